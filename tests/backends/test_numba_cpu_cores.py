"""The cores of a CPU: which of them makes which iterations, when a run counts, and that subscripts leave vectors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import get_num_threads, get_thread_id, njit, types, void

from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.backends.numba_cpu.parallel_for import CHUNKS_PER_CORE, LEAST_WORK, sharer
from looptune.backends.numba_cpu.program import CpuProgram
from looptune.runtime import device
from looptune.runtime.device import Cpu
from tests.helpers.reduction_cases import planned

ARGS = (types.int64[::1],)


@njit(void(types.int64, types.int64, *ARGS))
def counting(start, stop, seen):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        seen[i] += 1


@njit(void(types.int64, types.int64, *ARGS))
def noting(start, stop, order):  # type: ignore[no-untyped-def]
    order[start] = stop


@njit
def shared(kernel, lo, trips, cores, array, uneven):  # type: ignore[no-untyped-def]
    sharer_of_one(kernel, lo, 1, trips, cores, 1.0, uneven, (array,))


sharer_of_one = sharer(ARGS, least_work=0.0)


@njit
def left_alone(kernel, lo, trips, cores, work, array):  # type: ignore[no-untyped-def]
    usual_sharer(kernel, lo, 1, trips, cores, work, False, (array,))


usual_sharer = sharer(ARGS)


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("cores", [1, 2, 3, 5])
@pytest.mark.parametrize("trips", [-3, 0, 1, 2, 3, 7, 8, 9, 100])
def test_each_iteration_is_made_once(cores: int, trips: int, uneven: bool) -> None:
    """Whatever the number of cores, of iterations fewer or more than there are chunks."""
    seen = np.zeros(128, np.int64)
    shared(counting, 5, trips, cores, seen, uneven)
    expected = np.zeros(128, np.int64)
    expected[5 : 5 + max(0, trips)] = 1
    assert seen.tolist() == expected.tolist()


def test_chunks_are_even() -> None:
    """As many as there are cores times CHUNKS_PER_CORE, of one size where that divides the iterations."""
    order = np.zeros(64, np.int64)
    shared(noting, 0, 64, 2, order, False)
    starts = np.flatnonzero(order)
    assert starts.tolist() == list(range(0, 64, 64 // (2 * CHUNKS_PER_CORE)))


@njit(void(types.int64, types.int64, *ARGS))
def signing(start, stop, thread):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        thread[i] = get_thread_id()


def test_cores_share_a_triangle_evenly() -> None:
    """Each has as many iterations from the first half as from the second."""
    thread = np.zeros(64, np.int64)
    cores = get_num_threads()
    shared(signing, 0, 64, cores, thread, True)
    early, late = (np.bincount(half, minlength=cores).tolist() for half in (thread[:32], thread[32:]))
    assert 64 % (cores * CHUNKS_PER_CORE) or early == late


@pytest.mark.parametrize(("work", "calls"), [(LEAST_WORK - 1, 1), (LEAST_WORK, 2 * CHUNKS_PER_CORE)])
def test_little_work_is_left_to_one_core(work: float, calls: int) -> None:
    """It calls the kernel once, for all iterations."""
    order = np.zeros(64, np.int64)
    left_alone(noting, 0, 64, 2, work, order)
    assert np.count_nonzero(order) == calls
    assert order.max() == 64


TRIANGLE = """
void f(int n, float A[n][n], float B[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++)
      A[i][j] = A[i][j] + 2 * B[i][j];
}
"""


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize("directives", [(), ("loop i: unroll 4, jam",), ("loop i: tile i:8, j:8",)])
def test_loops_that_do_not_begin_at_a_constant_are_vectors(
    directives: tuple[str, ...], tmp_path: Path, optimising: None
) -> None:
    """Numba tests a subscript whose sign it cannot see, and LLVM makes no vectors of such a loop."""
    text = NumbaCpu(tmp_path).emit(planned(TRIANGLE, *directives)).replace("@kept(", "@njit(")
    space: dict[str, Any] = {}
    exec(text, space)
    code = "".join(space["f_0"].inspect_llvm().values())
    assert re.search(r"f(mul|add) .*<\d+ x float>", code), "sums of vectors"


class Clock:
    """A machine whose every run takes a millisecond, and time that passes otherwise only by ``sleep``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.runs = 0.0, 0
        monkeypatch.setattr(device.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(device.time, "perf_counter_ns", lambda: int(self.now * 1e9))

    def run(self, *args: object) -> None:
        self.now += 1e-3
        self.runs += 1


def test_a_run_counts_when_its_threads_have_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """At first and after a pause a dozen runs come before the one that counts, else one; code that may have threads of
    its own is always woken."""
    clock, cpu = Clock(monkeypatch), Cpu()
    sample = cpu.sampler(clock.run, {})
    foreign = cpu.sampler(cpu.external_kernel(clock.run, ()), {})

    def runs(sampler: Callable[[], float]) -> int:
        before = clock.runs
        assert sampler() == pytest.approx(1000.0)
        return clock.runs - before

    assert (runs(sample), runs(sample)) == (13, 2)
    clock.now += 0.1
    assert (runs(sample), runs(foreign), runs(foreign), runs(sample)) == (13, 13, 13, 2)


@pytest.mark.parametrize("shape", [(3, 5), (0, 4), (70_000,), (1,)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_arrays_begin_at_a_cache_line(shape: tuple[int, ...], dtype: str) -> None:
    """A copy, by rows, of whatever array; one without elements has no beginning."""
    given = np.asfortranarray(np.arange(np.prod(shape)).reshape(shape).astype(dtype))
    placed = Cpu().place(given)
    assert not given.size or placed.ctypes.data % device.LINE == 0
    assert placed.flags.c_contiguous
    assert placed.dtype == given.dtype
    np.testing.assert_array_equal(placed, given)
    placed += placed.dtype.type(1)
    assert not given.size or placed.flat[0] != given.flat[0]


def test_threads_are_only_set_where_they_are_fewer() -> None:
    """Of a program that may have one thread; the number is what it was when it ends, or fails."""
    every, seen = get_num_threads(), []
    made = planned("void f(int n, float x[n])\n{ for (int i = 0; i < n; i++) x[i] += 1; }")

    def entry(n: int, x: np.ndarray, cores: int) -> None:
        seen.append((cores, get_num_threads()))
        assert n, "none to do"

    x = np.zeros(4, np.float32)
    for threads in (None, every + 1, 1):
        CpuProgram(made, entry, threads).run({"x": x}, {"n": 4})
    with pytest.raises(AssertionError, match="none to do"):
        CpuProgram(made, entry, 1).run({"x": x}, {"n": 0})
    assert seen == [(every, every), (every, every), (1, 1), (1, 1)]
    assert get_num_threads() == every
