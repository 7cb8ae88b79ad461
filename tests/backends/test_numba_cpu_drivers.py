"""Drivers of a CPU's versions: shared by those that launch their kernels in one way, and passed on as machine code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import compiler

from looptune.backends.numba_cpu.backend import NumbaCpu
from tests.helpers.reduction_cases import planned

TEXT = """
void f(int n, float x[n], float out[1]) {
  float sum = 0;
  for (int i = 0; i < n; i++)
    sum += x[i];
  for (int i = 0; i < n; i++)
    x[i] = x[i] * 2;
  out[0] = sum;
}
"""


def computed(backend: NumbaCpu, plan: Any) -> tuple[float, float]:
    x, out = np.arange(100, dtype=np.float32), np.zeros(1, np.float32)
    backend.load(backend.build(plan)).run({"x": x, "out": out}, {"n": 100})
    return float(out[0]), float(x.sum())


def test_versions_that_launch_alike_share_a_driver(tmp_path: Path) -> None:
    """And the kernels that they have in common: a reduction, a divided loop and one statement."""
    backend = NumbaCpu(tmp_path)
    assert computed(backend, planned(TEXT)) == (4950.0, 9900.0)
    before = set(tmp_path.glob("looptune_*.py"))
    assert computed(backend, planned(TEXT, "loop 1: unroll 4")) == (4950.0, 9900.0)
    [new] = set(tmp_path.glob("looptune_*.py")) - before
    assert "def kernel(" in new.read_text()


def test_loading_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process has built the version; its clock may differ."""
    backend = NumbaCpu(tmp_path)
    binary = backend.build(planned(TEXT.replace("2", "3")))
    for path in tmp_path.glob("looptune_*.py"):
        path.touch()
        del sys.modules[path.stem]
    monkeypatch.setattr(compiler, "compile_extra", lambda *args, **options: pytest.fail("it compiles"))
    x, out = np.ones(4, np.float32), np.zeros(1, np.float32)
    backend.load(binary).run({"x": x, "out": out}, {"n": 4})
    assert (out.tolist(), x.tolist()) == ([4.0], [3.0] * 4)
