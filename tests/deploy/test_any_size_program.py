"""Programs without known sizes on a GPU that is not there: arrays of more elements than 32 bits count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from looptune.backends.base import Backend, Binary, PartialRun, Program, TimeLimit
from looptune.backends.codegen.kernel import check_elements
from looptune.core.errors import ResourceError, UsageError
from looptune.deploy import any_size_program
from looptune.deploy.best_kernel import BestKernel
from looptune.deploy.compile import CompiledKernel
from looptune.deploy.runtime.lookup import Device
from looptune.frontend import load
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from tests.helpers import cross_check, synthetic_database
from tests.helpers.kernel_cases import planned

ROWS = """void f(long n, int m, float A[n][m], const float *x)
{ for (long i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] += x[i * m + j]; }
"""
OWN = """void f(int n, int m, float y[n])
{ float B[n][m];
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) B[i][j] = i + j;
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += B[i][j]; }
"""
LARGE, USUAL = (1 << 15, (1 << 16) + 1), (1 << 15, 1 << 16)


@dataclass
class Runs(Program):
    """Notes that it ran, and refuses what its plan does not count."""

    plan: Plan
    ran: list[bool]

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        counts = {name: int(np.prod(any_size_program.shape_of(a), dtype=object)) for name, a in arrays.items()}
        check_elements(self.plan, counts, scalars)
        self.ran.append(self.plan.wide_indices)

    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        self.run(arrays, scalars, stream)
        return PartialRun(1.0, 1, 1)


@dataclass
class Notes(Backend):
    """Builds nothing; ``ran`` says for each run whether its subscripts have 64 bits."""

    name = "numba-cuda"
    built: list[bool] = field(default_factory=list)
    ran: list[bool] = field(default_factory=list)

    def emit(self, plan: Plan) -> str:
        return ""

    def build(self, plan: Plan) -> Binary:
        self.built.append(plan.wide_indices)
        return Binary(self.name, plan, "", {}, (), 0.0)  # type: ignore[arg-type]

    def load(self, binary: Binary) -> Program:
        return Runs(binary.plan, self.ran)


def on_device(*shape: int, **more: Any) -> Any:
    """An array of floats with the CUDA Array Interface alone, at an address of its own."""
    data = (len(shape) << 50, more.pop("read_only", False))
    return SimpleNamespace(__cuda_array_interface__={"shape": shape, "typestr": "<f4", "data": data, **more})


def compiled(text: str, backend: Notes, lines: tuple[str, ...] = ()) -> CompiledKernel:
    plan, machine = planned(text, lines), SimpleNamespace(place=lambda a: on_device(*a.shape), fetch=lambda _: None)
    program = any_size_program.load(backend, plan, backend.build(plan), blocks=True)
    return CompiledKernel(plan.codelet, "", "\n".join(lines), plan, "numba-cuda", program, machine)  # type: ignore[arg-type]


@pytest.mark.parametrize("lines", [(), ("loop j: unroll 4", "codelet: grid blocksize 64x1")])
def test_an_array_that_needs_them_gets_subscripts_of_64_bits(lines: tuple[str, ...]) -> None:
    """Built at the first call with one; all other calls run the kernels that were built before."""
    backend = Notes()
    kernel = compiled(ROWS, backend, lines)
    for n, m in (USUAL, LARGE, LARGE, USUAL):
        kernel(n, m, on_device(n, m), on_device(n * m))
    assert backend.built == [False, True]
    assert backend.ran == [False, True, True, False]


def test_arrays_of_the_plan_count_too() -> None:
    """An array of the function itself is in the memory of the device, and has more elements than any argument."""
    backend = Notes()
    kernel = compiled(OWN, backend)
    for n, m in (USUAL, LARGE):
        kernel(n, m, on_device(n))
    assert backend.ran == [False, True]
    with pytest.raises(ResourceError, match=f"B has {LARGE[0] * LARGE[1]} elements, the limit is {1 << 31}"):
        Runs(kernel.plan, []).run({"y": on_device(LARGE[0])}, {"n": LARGE[0], "m": LARGE[1]})


def test_what_32_bits_count_is_no_such_program() -> None:
    """An extent that is an int, and a CPU."""
    backend, text = Notes(), "void f(int n, float A[n]) { for (int i = 0; i < n; i++) A[i] = 1; }\n"
    plan = planned(text, ())
    assert isinstance(any_size_program.load(backend, plan, backend.build(plan), blocks=True), Runs)
    plan = planned(ROWS, ())
    assert isinstance(any_size_program.load(backend, plan, backend.build(plan), blocks=False), Runs)


@pytest.mark.filterwarnings("ignore:f. nothing was tuned")
@pytest.mark.parametrize("specialize", [True, False])
def test_the_best_of_a_database_has_them(specialize: bool) -> None:
    """Where sizes are constants an array without an extent may need them, and without constants any array may."""
    backend, unit = Notes(), load(ROWS)
    best = BestKernel(Analysis(unit.codelet), backend, Device(*synthetic_database.H200), (), specialize)
    for n, m in ((1000, 1000), LARGE):
        at = {"n": n, "m": m}
        best.at(at).program.run({"A": on_device(n, m), "x": on_device(n * m)}, at)
    assert backend.ran[0] is False
    assert len(backend.ran) == 2


def test_arrays_on_a_device_are_checked() -> None:
    """Without gaps, which those without elements have not, and writeable where they are written."""
    kernel = compiled(ROWS, Notes())
    kernel(0, 4, on_device(0, 4, strides=(0, 0)), on_device(0))
    kernel(1, 4, on_device(1, 4, strides=(999, 4)), on_device(4, strides=(4,), read_only=True))
    for array, message in (
        (on_device(2, 4, strides=(32, 4)), "A is a device array with gaps: pass a contiguous one"),
        (on_device(2, 4, read_only=True), "A is written, but the array given is read-only"),
        (on_device(2, 3), r"A must have the shape \[2\]\[4\], got \[2, 3\]"),
    ):
        with pytest.raises(UsageError, match=message):
            kernel(2, 4, array, on_device(8))
    with pytest.raises(UsageError, match="x is too short: it has 7 elements"):
        kernel(2, 4, on_device(2, 4), on_device(7))


@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_the_subscripts_are_in_the_kernels(tmp_path: Any) -> None:
    """The text that is built for such arrays differs from the usual one in the type of its subscripts."""
    made: list[str] = []

    class Emits(Notes):
        def build(self, plan: Plan) -> Binary:
            made.append(targets.emit("numba-cuda", plan, tmp_path))
            return super().build(plan)

    compiled(OWN, Emits())(*LARGE, on_device(LARGE[0]))
    usual, wide = made
    for text, index in ((usual, "B[uint32(i * m + j)]"), (wide, "B[uint64(int64(i) * m + int64(j))]")):
        assert index in text
        assert ("has more than 2147483648 elements" in text) == (text is usual)
