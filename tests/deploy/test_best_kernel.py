"""``config="best"`` on a GPU: kernels for the sizes of a call, whether these were measured or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from looptune.backends.base import Backend, Binary, Program
from looptune.core.errors import ResourceError
from looptune.deploy import best_kernel
from looptune.deploy.best_kernel import BestKernel, SelectedPlan, Specialize
from looptune.deploy.best_versions import best_versions
from looptune.deploy.runtime.lookup import Device
from looptune.frontend import load
from looptune.ir.nodes import Array, Const
from looptune.lower.plan import Plan
from looptune.schedule.analysis import Analysis
from looptune.tune.store.store import Store
from tests.helpers import synthetic_database

TEXT = "void f(int n, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
UNROLLED = "loop i: unroll 4, noremainder"


@dataclass
class FakeGpu(Backend):
    """Builds nothing; ``most``: of longer arrays a kernel exceeds a limit; ``go``: builds wait for it. ``broken``: its
    compiler fails where sizes are constants."""

    name = "numba-cuda"
    most: int = 10**9
    go: Event | None = None
    broken: bool = False
    built: list[Plan] = field(default_factory=list)

    def emit(self, plan: Plan) -> str:
        return plan.schedule_text

    def build(self, plan: Plan) -> Binary:
        if self.go is not None and length(plan) is not None:
            assert self.go.wait(60)
        if (length(plan) or 0) > self.most:
            raise ResourceError("the kernel needs too much")
        if self.broken and length(plan) is not None:
            raise RuntimeError("NVRTC: out of memory\nat some place")
        self.built.append(plan)
        return Binary(self.name, plan, plan.schedule_text, {}, (), 0.0)

    def load(self, binary: Binary) -> Any:
        return FakeProgram(binary)


@dataclass
class FakeProgram:
    binary: Binary


def length(plan: Plan) -> int | None:
    """The constant length of the plan's arrays, None if it is a parameter."""
    extent = next(p.shape[0] for p in plan.codelet.params if isinstance(p, Array))
    return int(extent.value) if isinstance(extent, Const) else None


def made(tmp_path: Path, backend: FakeGpu, specialize: Specialize = True) -> BestKernel:
    """What was measured at n = 1000 on an H200."""
    unit = load(TEXT)
    db = synthetic_database.keep(
        tmp_path / "db", synthetic_database.context(unit, {"n": 1000}), {"": 9.0, UNROLLED: 5.0}
    )
    with Store.read(db) as store:
        rows = best_versions(store, unit, "numba-cuda")
    return BestKernel(Analysis(unit.codelet), backend, Device(*synthetic_database.H200), rows, specialize)


def at(kernel: BestKernel, sizes: Mapping[str, int]) -> tuple[SelectedPlan, int | None]:
    found = kernel.at(sizes)
    program: Program = found.program
    assert isinstance(program, FakeProgram)
    assert program.binary.plan is found.plan
    return found, length(found.plan)


@pytest.mark.filterwarnings("ignore:f. nothing was tuned")
def test_sizes_are_constants_of_kernels(tmp_path: Path) -> None:
    """Measured or not; each is built once, and a directive that is legal at some sizes is used there."""
    backend = FakeGpu()
    kernel = made(tmp_path, backend)
    assert at(kernel, {"n": 1000})[1] == 1000
    exact = len(backend.built)
    found, count = at(kernel, {"n": 2000})
    assert count == 2000
    assert found.match.level == "same device"
    assert found.plan.schedule_text == UNROLLED
    assert at(kernel, {"n": 2001})[0].plan.schedule_text == "loop i: unroll 4, remainder"
    for n in (1000, 2000, 2001):
        at(kernel, {"n": n})
    assert len(backend.built) == exact + 2


@pytest.mark.filterwarnings("ignore:f. nothing was tuned")
def test_the_program_for_any_sizes_runs_meanwhile(tmp_path: Path) -> None:
    """In the background, where it is asked for."""
    go = Event()
    kernel = made(tmp_path, FakeGpu(go=go), "background")
    assert at(kernel, {"n": 2000})[1] is None
    go.set()
    next(iter(kernel._specialized.values())).binary.result(60)
    assert at(kernel, {"n": 2000})[1] == 2000


@pytest.mark.filterwarnings("ignore:f. nothing was tuned")
def test_a_failure_in_the_background_is_a_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """One that names the error; the program for any sizes goes on. In the foreground the error is the call's."""
    kernel = made(tmp_path, FakeGpu(broken=True, go=(go := Event())), "background")
    assert at(kernel, {"n": 2000})[1] is None
    go.set()
    next(iter(kernel._specialized.values())).binary.exception(60)
    for n in (2000, 2000, 2001, 2001):
        assert at(kernel, {"n": n})[1] is None
        next(iter(reversed(kernel._specialized.values()))).binary.exception(60)
    (said,) = (str(w.message) for w in recwarn if "could not" in str(w.message))
    assert said == ("f runs kernels for any sizes, because those for n=2000 could not be built: RuntimeError: NVRTC: "
                    "out of memory")  # fmt: skip
    with pytest.raises(RuntimeError, match="NVRTC"):
        made(tmp_path, FakeGpu(broken=True)).at({"n": 2000})


@pytest.mark.filterwarnings("ignore:f. nothing was tuned")
def test_the_program_for_any_sizes_runs_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody asks for others, a kernel exceeds a limit, or there are too many of them."""
    assert at(made(tmp_path, FakeGpu(), specialize=False), {"n": 2000})[1] is None
    kernel = made(tmp_path, FakeGpu(most=3000))
    assert at(kernel, {"n": 2000})[1] == 2000
    assert at(kernel, {"n": 4000})[1] is None
    monkeypatch.setattr(best_kernel, "MOST_SPECIALIZED", 2)
    assert at(kernel, {"n": 2400})[1] is None
    assert at(kernel, {"n": 2000})[1] == 2000


@pytest.mark.filterwarnings("ignore:f. nothing was tuned")
def test_where_nothing_was_tuned_the_default_is_built_for_the_sizes(tmp_path: Path) -> None:
    """It has no row."""
    unit = load(TEXT)
    kernel = BestKernel(Analysis(unit.codelet), FakeGpu(), Device(*synthetic_database.H200), ())
    found, count = at(kernel, {"n": 77})
    assert (count, found.match.level, found.plan.schedule_text) == (77, "default", "")


@pytest.mark.filterwarnings("ignore:f. nothing was tuned")
def test_other_integers_are_arguments() -> None:
    """The number of a time step is no size: kernels are built once for all of them."""
    unit = load(TEXT.replace("int n,", "int n, int t,").replace("2 * x", "t * x"))
    backend = FakeGpu()
    kernel = BestKernel(Analysis(unit.codelet), backend, Device(*synthetic_database.H200), ())
    assert [at(kernel, {"n": 77, "t": t})[1] for t in range(5)] == [77] * 5
    assert len(backend.built) == 1
