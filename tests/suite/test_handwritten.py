"""The hand-written kernels: right at sizes that fit no tile, on the CPU and in the CUDA simulator, and in registers.

Each ``polybench/handwritten/X.py`` is called like the codelet of its ``polybench/X.c`` and compared with it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from numba import cuda

from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import Array, Codelet, Scalar
from looptune.ir.simplify import is_integer
from looptune.runtime import problem_sizes
from looptune.runtime.tolerance import RoundingEstimate, compare, perturb_by_ulp
from looptune.tune.measure.reference import outputs, reduction_terms
from tests.helpers import cross_check, handwritten_calls
from tests.helpers.paths import POLYBENCH, ROOT

KERNELS = sorted((POLYBENCH / "handwritten").glob("*.py"))
TIMES = {"tmax": 3, "iterations": 3}
"""Time steps: few, for each is several launches."""
SIZES = {
    "cpu": {"float32": ((90, 2, 5, 3), (2, 90, 3, 5), (35, 37, 3, 5)), "float64": ((13, 17, 7), (1,))},
    "library_cpu": {"float32": ((35, 37, 3, 5),), "float64": ((13, 17, 7),)},
    "cuda": {"float32": ((35, 37, 3, 5),), "float64": ((3, 5, 37),)},
}
"""Given to the sizes of a codelet in turn, again from the first where it has more: multiples of no tile or block."""
LOSSY = 10**10
"""As many terms as leave two digits of a float: where a rounding of the data changes more, no result means anything."""

SOON = ("2dconv", "gemm", "gesummv", "mvt")
"""The others take longest in the simulator."""
kernels = pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)


@dataclass(frozen=True)
class Problem:
    """A codelet at one size: its arguments in C's order, what it makes of the arrays, and of data a rounding away."""

    name: str
    arguments: dict[str, Any]
    want: dict[str, np.ndarray]
    moved: dict[str, np.ndarray]
    terms: int


@dataclass(frozen=True)
class Case:
    target: str
    dtype: str
    problem: Problem


def source(path: Path) -> Path:
    found = [c for c in POLYBENCH.glob("*.c") if c.stem.replace("-", "_") == path.stem]
    assert len(found) == 1, f"{path.name} belongs to a C file"
    return found[0]


def cases(path: Path) -> Iterator[Case]:
    text, file = path.read_text(), source(path)
    for target, types in ((t, types) for t, types in SIZES.items() if f"def {t}(" in text):
        for dtype, every in types.items():
            unit = load(file, dtype=dtype)
            names = [p.name for p in unit.codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)]
            spatial = [n for n in names if n not in TIMES]
            chosen = [{**TIMES, **dict(zip(spatial, cycle(size), strict=False))} for size in every]
            chosen += [{**dict.fromkeys(names, 3), empty: 0} for empty in names if dtype == "float32"]
            for size in chosen:
                posed = problem(file, dtype, tuple((n, size[n]) for n in names))
                if posed is not None:
                    yield Case(target, dtype, posed)


@cache
def problem(file: Path, dtype: str, given: tuple[tuple[str, int], ...]) -> Problem | None:
    """None where the loops leave their arrays, as some do when a size is 0, or where a rounding changes everything."""
    unit = load(file, dtype=dtype)
    codelet, known = unit.codelet, problem_sizes.problem(unit.codelet, {**unit.values, **dict(given)})
    arrays = known.arrays(codelet, seed=1)
    results = []
    for start in (arrays, perturb_by_ulp(arrays, seed=1)):
        try:
            made = meant(file, dtype, codelet, {**start, **known.values})
        except AssertionError:
            return None
        results.append({name: made[name] if name in outputs(codelet) else arrays[name] for name in arrays})
    want, moved = results
    if compare(want, moved, terms=LOSSY) is not None:
        return None
    arguments = {p.name: arrays[p.name] if isinstance(p, Array) else known.values[p.name] for p in codelet.params}
    sized = " ".join(f"{n}={v}" for n, v in given)
    return Problem(f"{dtype} {sized}", arguments, want, moved, reduction_terms(codelet, known.values))


def meant(file: Path, dtype: str, codelet: Codelet, given: cross_check.Arguments) -> dict[str, np.ndarray]:
    """By gcc where nothing can lie outside: most of the time were the interpreter's."""
    arguments = {p.name: given[p.name] for p in codelet.params}
    if shutil.which("gcc") and all(min(array.shape) > 1 for array in cross_check.arrays(arguments).values()):
        return cross_check.called(library(file, dtype), codelet, arguments)
    return cross_check.interpreted(codelet, arguments)


@cache
def library(file: Path, dtype: str) -> ctypes.CDLL:
    with TemporaryDirectory() as folder:
        text = c_printer.function(load(file, dtype=dtype).codelet)
        return cross_check.compiled(f"#include <math.h>\n{text}", Path(folder))


@pytest.mark.wide
@pytest.mark.sampled(2)
@pytest.mark.simulator
@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=() if p.stem in SOON else pytest.mark.long) for p in KERNELS]
)
@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_a_kernel_computes_what_the_loops_compute(path: Path, tmp_path: Path) -> None:
    """Float and double, sizes 0 and 1 included; the CPU's and the simulated GPU's kernels write nothing else."""
    every = list(cases(path))
    assert {(c.target, c.dtype) for c in every} >= {(t, d) for t in ("cpu", "cuda") for d in ("float32", "float64")}
    calls, results = tmp_path / "calls.pickle", tmp_path / "results.pickle"
    arguments = [(path, c.target, c.dtype, list(c.problem.arguments.values())) for c in every]
    calls.write_bytes(pickle.dumps(arguments))
    # The code is run once on small arrays: optimising it would take most of the time.
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_OPT": "0"}
    command = [sys.executable, "-m", handwritten_calls.__name__, str(calls), str(results)]
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    wrong = []
    for case, got in zip(every, pickle.loads(results.read_bytes()), strict=True):
        off = got if isinstance(got, str) else differs(case.problem, got)
        if off is not None:
            wrong.append(f"{case.target} {case.problem.name}: {off}")
    assert wrong == [], "\n".join(wrong)


def differs(posed: Problem, got: list[np.ndarray]) -> str | None:
    arrays = dict(zip(posed.want, got, strict=True))
    return compare(posed.want, arrays, terms=posed.terms, doubt=RoundingEstimate(posed.moved, {}))


@pytest.mark.sampled(30, "wide")
@pytest.mark.sampled(2)
@kernels
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_kernel_stays_in_registers(path: Path, dtype: str) -> None:
    """Without a GPU, every CUDA kernel of the file compiles for sm_90, uses no local memory, and floats stay floats."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    every = handwritten_calls.module(path).kernels(dtype)
    assert every
    for function, signature in every:
        ptx, _ = cuda.compile_ptx(function, signature, cc=(9, 0), opt=True)
        assert ".local" not in ptx, function.__name__
        assert dtype == "float64" or ".f64" not in ptx, f"{function.__name__} computes in double"
