"""``concurrent`` in built modules, on a driver that is made up: which launches of a graph wait for which."""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest

from looptune.frontend import load
from tests.helpers import cross_check, synthetic_database
from tests.helpers.built_modules import imported, run_alone, written

pytestmark = pytest.mark.filterwarnings("ignore:f:", "ignore:two:", "ignore:nothing was tuned")
N, M = 9, 5
STEPS = """
void f(int n, float A[n][n], float x[n], int m, float y[m]) {
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++) A[i][k] = A[i][k] * 2 + A[k][k];
    for (int j = k + 1; j < n; j++) A[k][j] = A[k][j] * 3 - A[k][k];
    for (int i = 0; i < n; i++) x[i] += A[k][i];
    for (int i = 0; i < m; i++) y[i] += x[k];
    for (int i = 0; i < n; i++) A[k][i] += y[0];
  }
}
"""
TWO = """
void two(int n, int m, float x[n], float y[m]) {
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < n; i++) x[i] += k;
    for (int i = 0; i < m; i++) y[i] = y[i] * 2 + k;
  }
}
"""


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """STEPS, whose first two kernels are concurrent, and TWO, in the same way, on a GPU that is not there."""
    if not cross_check.CUDA:
        pytest.skip("needs the package numba-cuda")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    tools = importlib.import_module("tests.helpers.fake_cuda_driver")
    captures = importlib.import_module("tests.helpers.fake_captures")
    found = SimpleNamespace(tools=tools)
    for text, name, line in ((STEPS, "f", "loop 3: concurrent"), (TWO, "two", "loop 3: concurrent")):
        unit = load(text)
        lines = f"loop 1: noParallel\n{line}"
        db = synthetic_database.keep(
            tmp_path / f"{name}.sqlite", synthetic_database.context(unit, {"n": N, "m": M}), {lines: 5.0}
        )
        made = imported(written(tmp_path, text, db))
        vars(found)[name] = made
        vars(found)[f"{name}_driver"] = tools.install(made, captures.Captures)
    return found


def called(gpu: SimpleNamespace, start: int = 4096, **more: Any) -> None:
    array = gpu.tools.DeviceArray
    shapes = ((N, N), (N,), (M,))
    A, x, y = (array(s, pointer=start + 1024 * k) for k, s in enumerate(shapes))
    gpu.f.f(N, A, x, M, y, **more)


def waits(nodes: list[Any]) -> list[int]:
    """How many launches made before it each launch does not wait for."""
    return [len({n.number for n in nodes[:k]} - node.before) for k, node in enumerate(nodes)]


PAIRED = [0, 1, 0, 0, 0] * (N - 1) + [0, 0, 0]
"""The second of every five runs beside the first; the loops of the last iteration have none of both."""


def test_a_repeated_call_runs_two_kernels_at_a_time(gpu: SimpleNamespace) -> None:
    """First one after the other, without events; then in a graph, where only the pairs do not wait for each other."""
    driver = gpu.f_driver
    called(gpu, stream=7)
    assert len(driver.launched) == len(PAIRED)
    assert {entry.stream for entry in driver.launched} == {7}
    assert driver.calls("cuEventRecord") == []
    called(gpu, stream=7)
    (graph,) = driver.graphs
    assert waits(graph) == PAIRED
    assert len({n.stream for n in graph}) == 2
    called(gpu, stream=7)
    assert len(driver.launched) == 2 * len(PAIRED)
    assert [given[1] for given in driver.calls("cuGraphLaunch")] == [7, 7]
    assert driver.origins == {}


@pytest.mark.wide
def test_in_the_simulator_one_kernel_runs_at_a_time(gpu: SimpleNamespace) -> None:
    """At the sizes of the sweep and at others, with what the C text leaves."""
    code = """
import f_tuned as t, numpy as np
t.CALL.device = lambda: t.Device("NVIDIA H200", 132, "sm_90")
for n in (9, 12):
    rng = np.random.default_rng(0)
    A, x, y = (rng.random(s, dtype=np.float32) for s in ((n, n), n, 5))
    t.f(n, A, x, 5, y, check=True)
    print(t.match(n, 5).plan)
"""
    said = run_alone(Path(gpu.f.__file__).parent, code, NUMBA_ENABLE_CUDASIM="1")
    assert said.split() == ["plan_1", "plan_2"]


def test_other_arrays_are_launched_one_after_the_other(gpu: SimpleNamespace) -> None:
    for k in range(3):
        called(gpu, 4096 + 65536 * k)
    assert gpu.f_driver.calls("cuEventRecord") == []
    assert {entry.stream for entry in gpu.f_driver.launched} == {0}


def test_the_callers_capture_forks_and_joins(gpu: SimpleNamespace) -> None:
    """From the stream that the caller captures, at the first call as well, and twice in one capture."""
    driver = gpu.f_driver
    driver.cuStreamBeginCapture(7, None)
    called(gpu, stream=7)
    called(gpu, 1 << 20, stream=7)
    assert driver.cuStreamEndCapture(7)[0] == gpu.tools.OK
    assert waits(driver.graphs[0]) == PAIRED * 2
    assert driver.calls("cuGraphLaunch") == []


@pytest.mark.parametrize("sizes", [(0, M), (N, 0), (N, M)])
def test_a_loop_without_iterations_is_not_beside_another_one(gpu: SimpleNamespace, sizes: tuple[int, int]) -> None:
    """Without the first of a pair, the second one waits for that of the iteration before."""
    array, (n, m) = gpu.tools.DeviceArray, sizes
    x, y = array((n,), pointer=4096), array((m,), pointer=8192)
    for _ in range(3):
        gpu.two.two(n, m, x, y)
    nodes = gpu.two_driver.graphs[0] if sizes == (N, M) else []
    assert waits(nodes) == ([0, 1, 0, 1] if nodes else [])
    gpu.two_driver.cuStreamBeginCapture(7, None)
    gpu.two.two(n, m, x, y, stream=7)
    assert gpu.two_driver.cuStreamEndCapture(7)[0] == gpu.tools.OK
    assert waits(gpu.two_driver.graphs[-1]) == ([0, 1, 0, 1] if sizes == (N, M) else [0, 0])


@pytest.mark.parametrize("failing", range(1, 6))
def test_a_launch_that_fails_ends_the_capture(gpu: SimpleNamespace, failing: int) -> None:
    """Whichever of the five it is: the next call records again, and the caller's capture can be ended."""
    driver = gpu.f_driver
    called(gpu)
    driver.failing = failing
    with pytest.raises(RuntimeError, match="CUDA"):
        called(gpu)
    assert driver.origins == {}
    called(gpu)
    assert waits(driver.graphs[-1]) == PAIRED
    assert len(driver.calls("cuGraphLaunch")) == 1
    driver.cuStreamBeginCapture(7, None)
    driver.failing = failing
    with pytest.raises(RuntimeError, match="CUDA"):
        called(gpu, stream=7)
    assert driver.cuStreamEndCapture(7)[0] == gpu.tools.OK
    driver.cuStreamBeginCapture(7, None)
    called(gpu, stream=7)
    assert driver.cuStreamEndCapture(7)[0] == gpu.tools.OK
    assert waits(driver.graphs[-1]) == PAIRED


def test_threads_have_streams_of_their_own(gpu: SimpleNamespace) -> None:
    """Four capture at the same time: no stream is a part of two captures."""
    driver, together = gpu.f_driver, Barrier(4)

    def work(stream: int) -> None:
        driver.cuStreamBeginCapture(stream, None)
        together.wait(60)
        for k in range(20):
            called(gpu, 4096 + (stream << 20) + 8192 * k, stream=stream)
        together.wait(60)
        assert driver.cuStreamEndCapture(stream)[0] == gpu.tools.OK

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(10, 14)))
    assert [waits(nodes) for nodes in driver.graphs] == [PAIRED * 20] * 4
    streams = [{n.stream for n in nodes} for nodes in driver.graphs]
    assert all(len(s) == 2 for s in streams)
    assert len(set.union(*streams)) == 8


def test_contexts_have_streams_of_their_own(gpu: SimpleNamespace) -> None:
    driver = gpu.f_driver
    for context in (1, 2, 1):
        driver.context = context
        for _ in range(2):
            called(gpu, 4096 + (context << 20))
    assert [waits(nodes) for nodes in driver.graphs] == [PAIRED] * 2
    made = [{driver.contexts[n.stream] for n in nodes} for nodes in driver.graphs]
    assert made == [{1}, {2}]


def test_kernels_that_are_compiled_in_the_background(gpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their plan is walked for its kernels, then exchanged, and its graph has the pairs."""
    monkeypatch.setattr(gpu.f, "SPECIALIZE", "background")
    called(gpu)
    (begun,) = gpu.f.CALL.compiling.values()
    begun.join(60)
    assert begun.error is None
    for _ in range(3):
        called(gpu)
    assert waits(gpu.f_driver.graphs[-1]) == PAIRED


def test_a_second_stream_that_is_in_another_capture_is_left_there(gpu: SimpleNamespace) -> None:
    """Launches follow each other then, and both captures can be ended."""
    driver = gpu.f_driver
    called(gpu, stream=7)
    (ready,) = gpu.f.CALL.own.ready.values()
    driver.cuStreamBeginCapture(8, None)
    ready.bound.fork.run(8, [lambda _: None, lambda _: None])
    driver.cuStreamBeginCapture(7, None)
    called(gpu, stream=7)
    assert [driver.cuStreamEndCapture(stream)[0] for stream in (7, 8)] == [gpu.tools.OK] * 2
    assert waits(driver.graphs[0]) == [0] * len(PAIRED)


def test_a_stream_in_a_capture_is_not_destroyed(gpu: SimpleNamespace) -> None:
    """Launches that are forgotten meanwhile do not end the caller's capture."""
    driver = gpu.f_driver
    driver.cuStreamBeginCapture(7, None)
    called(gpu, stream=7)
    gpu.f.CALL.own.ready.clear()
    assert not {*driver.destroyed} & {*driver.origins}
    assert driver.cuStreamEndCapture(7)[0] == gpu.tools.OK
    called(gpu, stream=7)
    before = len(driver.destroyed)
    gpu.f.CALL.own.ready.clear()
    assert len(driver.destroyed) == before + 1
