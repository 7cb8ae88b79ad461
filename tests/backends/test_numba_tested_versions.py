"""Numba's functions are replaced in versions that were tested; others are used as they are, and a warning says so."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from looptune.backends.numba_cuda.tested_versions import TESTED, untested_message
from tests.helpers import cross_check
from tests.helpers.paths import ROOT

COMPILED = r"""
import importlib.metadata, sys, warnings
real = importlib.metadata.version
importlib.metadata.version = lambda name: {"numba-cuda": "0.99.1"}.get(name) or real(name)
from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.runtime import targets
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for text in ("x[i] = 2 * y[i]", "x[i] = 3 * y[i]"):
        codelet = load(f"void f(int n, float x[n], float y[n]) {{\n  for (int i = 0; i < n; i++) {text};\n}}\n").codelet
        assert ".entry" in targets.ptx("numba-cuda", lower(codelet, blocks=True), "sm_90")
assert "looptune.backends.numba_cuda.compiler_patches" not in sys.modules
from numba.cuda.core.callconv import CUDACallConv
from looptune.backends.numba_cuda.noalias import noalias_readonly
own = CUDACallConv.decorate_function
with noalias_readonly():
    assert CUDACallConv.decorate_function is own
print(*(w.message for w in said if w.category is UserWarning), sep="\\n")
"""


@pytest.mark.parametrize(
    ("installed", "named"),
    [
        ({"numba": "0.68.0", "numba-cuda": "0.30.4"}, ()),
        ({"numba": "0.68.1", "numba-cuda": "0.30.4+cu13"}, ()),
        ({"numba": "0.68.1", "numba-cuda": "0.30.3"}, ("numba-cuda 0.30.3",)),
        ({"numba": "0.69.0rc1", "numba-cuda": "0.30.4"}, ("numba 0.69.0rc1",)),
        ({"numba": "0.68.1", "numba-cuda": "0.29.0"}, ("numba-cuda 0.29.0",)),
        ({"numba": "1.0", "numba-cuda": "0.31"}, ("numba 1.0", "numba-cuda 0.31")),
        ({"numba": "0.68.1", "numba-cuda": ""}, ("numba-cuda of an unknown version",)),
    ],
)
def test_versions_outside_of_the_range_are_named(installed: dict[str, str], named: tuple[str, ...]) -> None:
    said = untested_message(installed)
    assert bool(said) == bool(named)
    assert all(f"{each} (tested: " in said for each in named)
    assert said.count("(tested: ") == len(named)


def test_the_package_asks_for_what_was_tested() -> None:
    """The bounds in pyproject.toml are those of the check."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [Requirement(r) for r in (*project["dependencies"], *project["optional-dependencies"]["cuda"])]
    assert {r.name: r.specifier for r in asked if r.name in TESTED} == {
        name: SpecifierSet(f">={first},<{end}") for name, (first, end) in TESTED.items()
    }


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_another_version_compiles_with_one_warning() -> None:
    """Nothing is replaced in it, so that it compiles whatever it is like inside."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    (said,) = done.stdout.splitlines()
    assert "because of numba-cuda 0.99.1" in said
