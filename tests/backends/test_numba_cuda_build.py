"""Building for a GPU without one: versions share the kernels in which they do not differ."""

from __future__ import annotations

import importlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from looptune.backends.base import Progress, TimeLimit
from looptune.backends.numba_cuda.alpha_renaming import alpha_rename
from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan, grid_function
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.codelets import STEPS
from tests.helpers.paths import POLYBENCH

pytestmark = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")

TWO = """
void two(int n, float x[n], float y[n]) {
  for (int i = 0; i < n; i++) x[i] = 2 * y[i];
  for (int j = 0; j < n; j++) y[j] = x[n - 1 - j];
}
"""


def planned(*lines: str) -> Plan:
    return lower(schedule(Analysis(load(TWO).codelet), parse_lines(lines)).codelet)


def test_an_unchanged_kernel_is_compiled_once(tmp_path: Path) -> None:
    """Unrolling one of two loops compiles one kernel more; a build repeated compiles nothing."""
    backend = targets.backend("numba-cuda", tmp_path)
    first = backend.build(planned())
    kept = set(tmp_path.glob("*.cubin"))
    assert len(kept) == 2
    second = backend.build(planned("loop j: unroll 2, guarded"))
    assert len(set(tmp_path.glob("*.cubin")) - kept) == 1
    assert first.objects["two_0"] == second.objects["two_0"]
    assert first.objects["two_1"] != second.objects["two_1"]
    again = targets.backend("numba-cuda", tmp_path).build(planned())
    assert (again.objects, again.resources) == (first.objects, first.resources)
    assert len(list(tmp_path.iterdir())) == 3


def test_what_is_built_ahead_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that another process has compiled are in the cache; a backend without one has nothing to do."""
    cubin = importlib.import_module("looptune.backends.cuda.cubin")
    for name in ("numba-cuda", "cuda-c"):
        targets.backend(name, tmp_path).build_ahead(planned(), 1)
    monkeypatch.setattr(cubin, "link", None)
    for name in ("numba-cuda", "cuda-c"):
        assert [*targets.backend(name, tmp_path).build(planned()).objects] == ["two_0", "two_1"]
    targets.backend("numba-cpu", tmp_path).build_ahead(planned(), 0)


def test_two_processes_do_not_compile_one_kernel(tmp_path: Path) -> None:
    """The second one waits for the first, and takes its code."""
    cubin = importlib.import_module("looptune.backends.cuda.cubin")
    begun, made = threading.Event(), []

    def make() -> tuple[bytes, str]:
        made.append(begun.set())
        time.sleep(0.1)
        return b"code", "log"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cubin.load_or_make, tmp_path, ("one",), make)
        assert begun.wait(10.0)
        second = pool.submit(cubin.load_or_make, tmp_path, ("one",), make)
        assert first.result() == second.result() == (b"code", "log")
    assert len(made) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_kernels_that_differ_in_names_are_one(tmp_path: Path) -> None:
    """Three products of matrices of one size are compiled once; of another size, or in another order, they are not."""
    backend = targets.backend("numba-cuda", tmp_path)
    codelet = schedule(Analysis(load(POLYBENCH / "3mm.c").codelet)).codelet
    same = backend.build(lower(specialize(codelet, dict.fromkeys(("ni", "nj", "nk", "nl", "nm"), 64)))).objects
    assert len(same) >= 3
    assert len(list(tmp_path.glob("*.cubin"))) == len(set(same.values())) == 1
    sizes = {"ni": 64, "nj": 65, "nk": 66, "nl": 67, "nm": 68}
    assert len(set(backend.build(lower(specialize(codelet, sizes))).objects.values())) == 3


def test_names_of_the_program_are_left_alone(tmp_path: Path) -> None:
    """What the module imports, and what the compiler names itself, gives way to the names of the C program."""
    text = """
void types(int n, float ir[2 * n], float v1__at[2 * n]) {
  for (int i = 0; i < n; i++) { ir[2 * i] = 1; v1__at[2 * i] += ir[2 * i]; }
}
"""
    source = targets.backend("numba-cuda", tmp_path).emit(lower(schedule(Analysis(load(text).codelet)).codelet))
    assert "def types_(n, ir_, v1__at, stream=0)" in source
    assert "v2__at = uint32(2 * i)" in source


def test_names_by_place() -> None:
    """Parameters and what is assigned are renamed, what is called or read from outside is not."""
    text = """\
@cuda.jit
def k_1(B, a0):
    i = uint32(a0)
    while i < 4:
        B[i] = math.sin(B[i])
        i = i + 1
"""
    assert (
        alpha_rename(text, "k")
        == """\
@cuda.jit
def k(a0, a1):
    v0 = uint32(a1)
    while v0 < 4:
        a0[v0] = math.sin(a0[v0])
        v0 = v0 + 1
"""
    )


def test_a_plan_stops_between_launches_on_a_made_up_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Launches are queued until the time of the device, less that of the host, is over the limit."""
    program_of = importlib.import_module("looptune.backends.cuda.program")
    codelet = load(STEPS).codelet
    made = lower(schedule(Analysis(codelet)).codelet, blocks=True)
    launched: list[str] = []
    marks: dict[int, int] = {}
    created = count()

    class Driver:
        """Every launch takes 1000 us; an event is the number of launches before it."""

        def CUstream(self, handle: int) -> int:
            return handle

        def cuLaunchKernel(self, kernel: str, *rest: object) -> tuple[int]:
            launched.append(kernel)
            return (0,)

        def cuEventCreate(self, flags: int) -> tuple[int, int]:
            return (0, next(created))

        def cuEventRecord(self, event: int, stream: int) -> tuple[int]:
            marks[event] = len(launched)
            return (0,)

        def cuEventElapsedTime(self, first: int, last: int) -> tuple[int, float]:
            return (0, float(marks[last] - marks[first]))

        def __getattr__(self, name: str) -> object:
            return lambda *given: (0, 1)

    monkeypatch.setattr(program_of, "driver", Driver())
    monkeypatch.setattr(program_of, "check", lambda result: result[1] if len(result) > 1 else None)
    launch = importlib.import_module("looptune.backends.cuda.launch")
    monkeypatch.setattr(launch, "driver", program_of.driver)
    program = object.__new__(program_of.CudaProgram)
    program.plan, program.launchers, program.wide = made, OrderedDict(), ()
    program.convention = program_of.CallingConvention(False, "")
    program.entries = {kernel.name: kernel.name for kernel in made.kernels}
    program.grids = {kernel.name: grid_function(kernel) for kernel in made.kernels}
    arrays = {name: DeviceLike(50) for name in "xy"}
    ran = program.run_within(TimeLimit(1e9), arrays, {"t": 20, "n": 50})
    assert (ran.launched, ran.launches, launched) == (40, 40, ["steps_0", "steps_1"] * 20)
    assert 30_000 < ran.us <= 40_000
    pace = Progress(
        "k in range(0, 20): S0 S1, after nothing", (2_000.0, 4_000.0, 6_000.0, 10_000.0, 20_000.0, 40_000.0)
    )
    assert ran.pace == pace
    launched.clear()
    assert program.run_within(TimeLimit(1e9, pace), arrays, {"t": 20, "n": 50}).launched == 40
    ran = program.run_within(TimeLimit(1e9, replace(pace, us=(4_000.0, 500.0))), arrays, {"t": 20, "n": 50})
    assert (ran.launched, ran.pace) == (3, replace(pace, us=(2_000.0,)))
    launched.clear()
    ran = program.run_within(TimeLimit(10_000.0), arrays, {"t": 20, "n": 50})
    assert 10_000 < ran.us < 13_000
    assert ran.launched == len(launched) < ran.launches == 40


@pytest.mark.parametrize(
    ("each_us", "host_us", "least_us", "most_us"),
    [
        (30.0, 10.0, 0.93, 1.0),  # the host runs ahead, so that the device is busy all the time
        (4.0, 10.0, 0.0, 0.5),  # the device waits for every launch
        (10.0, 10.0, 0.0, 1.0),
    ],
)
def test_a_busy_device_is_told_from_one_that_waits(
    monkeypatch: pytest.MonkeyPatch, each_us: float, host_us: float, least_us: float, most_us: float
) -> None:
    """What is said to be the least time is never more than it is, and near it where launches pile up; a launch takes
    8 us to arrive."""
    program_of = importlib.import_module("looptune.backends.cuda.program")
    now, ends, busy = [0.0], [0.0], [0.0]
    events: dict[int, float] = {}

    def launched() -> Iterator[None]:
        for _ in range(2_000):
            now[0] += host_us
            ends[0] = max(ends[0], now[0] + 8.0) + each_us
            busy[0] += each_us
            yield

    class Driver:
        CUresult = SimpleNamespace(CUDA_SUCCESS=0, CUDA_ERROR_NOT_READY=600)

        def cuEventRecord(self, event: int, stream: int) -> tuple[int]:
            events[event] = max(ends[0], now[0])
            return (0,)

        def cuEventQuery(self, event: int) -> tuple[int]:
            return (0 if events[event] <= now[0] else 600,)

        def cuEventSynchronize(self, event: int) -> tuple[int]:
            now[0] = max(now[0], events[event])
            return (0,)

        def cuEventElapsedTime(self, first: int, last: int) -> tuple[int, float]:
            return 0, (events[last] - events[first]) / 1e3

    monkeypatch.setattr(program_of, "driver", Driver())
    monkeypatch.setattr(program_of, "check", lambda result: result[1] if len(result) > 1 else None)
    monkeypatch.setattr(program_of.time, "perf_counter_ns", lambda: int(1e3 * now[0]))
    made, least, most = program_of._batch(0, (0, 1, 2, 3), launched(), 1_500)
    assert (made, busy[0]) == (1_500, 1_500 * each_us)
    assert least <= busy[0] <= most + 1
    assert least_us <= least / busy[0] <= most_us


def test_calls_at_sizes_in_turn_keep_their_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are bounded, beside those that a graph of the caller's uses; a device that is full has fewer."""
    program_of = importlib.import_module("looptune.backends.cuda.program")
    state = SimpleNamespace(capturing=0, room=99, made=0)

    class Launches:
        scratch = True

        def __init__(self, program: object, sizes: dict[str, int], *names: tuple[str, ...]) -> None:
            if len({*program.launchers.values(), *program.captured}) >= state.room:
                raise RuntimeError("CUDA: CUDA_ERROR_OUT_OF_MEMORY")
            state.made += 1

        def place(self, *_: object) -> None: ...
        def step_or_replay(self, *_: object) -> None: ...

    monkeypatch.setattr(program_of, "PlanLauncher", Launches)
    monkeypatch.setattr(program_of, "check", lambda _: state.capturing)
    fake = SimpleNamespace(CUstream=int, cuStreamIsCapturing=lambda _: (0, state.capturing))
    monkeypatch.setattr(program_of, "driver", fake)
    program = object.__new__(program_of.CudaProgram)
    program.plan = lower(schedule(Analysis(load(STEPS).codelet)).codelet, blocks=True)
    program.launchers, program.captured, program.wide = OrderedDict(), set(), ()

    def called(*sizes: int, capturing: int = 0) -> int:
        state.made, state.capturing = 0, capturing
        for n in sizes:
            program.run({name: DeviceLike(n) for name in "xy"}, {"t": 2, "n": n})
        return state.made

    assert called(50, 60, 50, 60) == 2
    assert called(70, capturing=1) == 1
    (kept,) = program.captured
    assert called(*range(100, 100 + program_of.MOST_SIZES)) == program_of.MOST_SIZES == len(program.launchers)
    assert kept not in program.launchers.values()
    assert program.captured == {kept}
    state.room = 3
    assert called(50, 60, 50, 60) == 2
    assert called(80) == 1


class DeviceLike:
    def __init__(self, count: int) -> None:
        self.__cuda_array_interface__ = {"shape": (count,), "data": (4096, False)}
