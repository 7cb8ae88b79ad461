"""Modules that ``looptune build`` writes, and what they are made of."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from looptune.deploy import build
from looptune.frontend import load
from tests.helpers import cross_check
from tests.helpers.paths import POLYBENCH

cuda = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
GEMM = POLYBENCH / "gemm.c"
AXPY = """
void axpy(int n, float a, float x[n], float y[n])
{ for (int i = 0; i < n; i++) y[i] += a * x[i]; }
"""
ROWS = """
void rows(int n, int m, float A[n][m], float y[n], float x[m])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += A[i][j] * x[j]; }
"""
TUNED = "loop j: parallel\ncodelet: grid blocksize 32x4"


def written(folder: Path, text: str, db: Path | None, target: str = "auto", **more: Any) -> Path:
    path = folder / f"{re.search('void (.*?)[(]', text)[1]}_tuned.py"  # type: ignore[index]
    (folder / "source.c").write_text(text)
    unit = load(folder / "source.c")
    path.write_text(build.as_python(unit, db if db is not None else folder / "none", target, "looptune build", **more))
    return path


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def run_alone(folder: Path, code: str, **environment: str) -> str:
    """What the code prints in a process that cannot import looptune."""
    env = {**os.environ, "PYTHONPATH": str(folder), **environment}
    barred = "import sys\nsys.modules['looptune'] = None\nimport numpy as np\n"
    done = subprocess.run(
        [sys.executable, "-c", barred + code], cwd=folder, env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def plain_ptx(ptx: str) -> str:
    """Without comments, and with names by their place."""
    names: dict[str, str] = {}
    bare = re.sub(r"//[^\n]*", "", ptx)
    return re.sub(r"(?:_cudapy|_?_ZN)\w+", lambda found: names.setdefault(found[0], f"name{len(names)}"), bare).strip()
