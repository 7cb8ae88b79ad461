"""Workers: whatever a task does to its process, the coordinator gets a reply, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from looptune.core.errors import TargetError
from looptune.runtime.outcome import Crashed, TimedOut
from looptune.tune.execution.process import ProcessCache, preload
from looptune.tune.execution.worker import Worker, run_one, wait
from looptune.tune.execution.worker_loop import TaskError, TaskResult, excluded_from_limit
from tests.helpers.paths import ROOT
from tests.helpers.worker_tasks import broken_setup, gone, one, setup, slow_setup


def working_setup() -> Callable[..., Any]:
    with excluded_from_limit():
        return setup(7)


def dying_setup() -> Callable[..., Any]:
    print("driver trouble", file=sys.stderr, flush=True)
    os._exit(9)


@pytest.fixture(scope="module", params=["new", "copied"])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A worker whose processes are new interpreters, and one whose processes are copies of a preloaded one."""
    if request.param == "copied":
        preload(["tests.helpers.worker_tasks"])
    with (
        ProcessCache(copied=request.param == "copied") as spares,
        Worker(partial(setup, 100), limit_s=1.0, spares=spares) as worker,
    ):
        yield worker


@pytest.mark.wide
def test_own_work_is_not_what_a_task_is_timed_for(worker: Worker) -> None:
    """The limit of a second begins anew behind it, and holds then; it has one of its own."""
    assert one(worker, "own", 1.5, 0.0) == TaskResult("own")
    assert one(worker, "own", 0.0, 30.0) == TimedOut(1.0)
    with Worker(setup, 30.0, start_limit_s=20.0) as patient:
        assert one(patient, "add", 1) == TaskResult(1)
        patient.start_limit_s = 1.0
        assert one(patient, "own", 30.0, 0.0) == TimedOut(1.0)
    with Worker(working_setup, 30.0) as other:
        assert one(other, "add", 1) == TaskResult(8), "and setting up is own work anyway"


def test_getting_ready_again_loses_no_reply() -> None:
    """A worker is told to start after a task has killed its process, and before that is noticed."""
    with Worker(setup, 30.0) as worker:
        assert isinstance(run_one(worker, "pid"), TaskResult)
        worker.submit("last", "kill", signal.SIGKILL)
        life = worker.waiting_for
        assert life is not None
        life.process.join(30.0)
        worker.start()
        ((_, key, reply),) = wait((worker,), 30.0)
        assert (key, type(reply)) == ("last", Crashed)
        assert isinstance(run_one(worker, "pid"), TaskResult)


def test_values_come_back(worker: Worker):
    """The set-up runs once, in the process, and its function answers every task."""
    assert one(worker, "add", 1, 2) == TaskResult(103)
    assert one(worker, "pid") == one(worker, "pid") != TaskResult(os.getpid())


def test_large_values_pass(worker: Worker):
    """A reply and a task far beyond a pipe's buffer."""
    reply = one(worker, "large", 20_000_000)
    assert isinstance(reply, TaskResult)
    assert one(worker, "x", reply.value) == TaskResult("x")


@pytest.mark.parametrize("what", ["raise", "unpicklable"])
def test_exceptions_come_back_as_text(worker: Worker, what: str):
    """The process lives on; the last line and the whole trace are kept."""
    before = one(worker, "pid")
    reply = one(worker, what)
    assert isinstance(reply, TaskError)
    assert ("ValueError: no such thing" if what == "raise" else "pickle") in reply.message
    assert reply.trace.startswith("Traceback")
    assert one(worker, "pid") == before


@pytest.mark.parametrize(
    ("task", "first", "evidence"),
    [
        (("kill", signal.SIGKILL), "SIGKILL", "before the end"),
        (("kill", signal.SIGABRT), "SIGABRT", "before the end"),
        (("segfault",), "SIGSEGV", "in string_at"),
        (("exit",), "exit code 3", ""),
    ],
)
def test_a_death_is_a_crash_with_its_name(worker: Worker, task: tuple[Any, ...], first: str, evidence: str):
    """The signal's name, then the last lines written; the next task gets a new process."""
    reply = one(worker, *task)
    assert isinstance(reply, Crashed)
    assert reply.message.splitlines()[0] == first
    assert evidence in reply.message
    assert one(worker, "add", 1) == TaskResult(101)


def test_only_the_crashing_task_is_quoted(worker: Worker):
    """What an earlier task wrote is not evidence against a later one."""
    one(worker, "raise")
    reply = one(worker, "exit")
    assert reply == Crashed("exit code 3")


@pytest.mark.wide
@pytest.mark.parametrize("what", ["sleep", "spin"])
def test_a_hanging_task_is_killed(worker: Worker, what: str):
    """In Python or in native code: killed at its limit, and the next task runs."""
    one(worker, "add")
    start = time.monotonic()
    assert one(worker, what, 600) == TimedOut(1.0)
    assert time.monotonic() - start > 0.9
    assert one(worker, "add", 1) == TaskResult(101)


def test_an_idle_worker_that_died_is_replaced(worker: Worker):
    """A process killed between tasks costs no task."""
    reply = one(worker, "pid")
    assert isinstance(reply, TaskResult)
    os.kill(reply.value, signal.SIGKILL)
    time.sleep(0.2)
    assert one(worker, "add", 1) == TaskResult(101)


@pytest.mark.parametrize(("make", "why"), [(broken_setup, "no device here"), (dying_setup, "driver trouble")])
def test_a_worker_that_cannot_start_is_the_users_to_know(make: Any, why: str):
    """A set-up that raises or dies is a TargetError with its evidence, not a crash of the task."""
    with Worker(make, limit_s=5.0) as worker, pytest.raises(TargetError, match=why):
        one(worker, "add")


def killed_setup(times: int, journal: Path) -> Callable[..., Any]:
    with journal.open("a") as file:
        file.write("x")
    if len(journal.read_text()) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return setup()


@pytest.mark.wide
def test_a_worker_killed_while_it_sets_up_is_started_again(tmp_path: Path):
    """Twice, and the task is kept; killed once more it is the user's to know."""
    with Worker(partial(killed_setup, 2, tmp_path / "a"), limit_s=5.0) as worker:
        assert one(worker, "add", 1) == TaskResult(1)
    with (
        Worker(partial(killed_setup, 9, tmp_path / "b"), limit_s=5.0) as worker,
        pytest.raises(TargetError, match="cannot start: SIGKILL"),
    ):
        one(worker, "add", 1)
    assert (tmp_path / "b").read_text() == "xxx"


@pytest.mark.wide
def test_setting_up_does_not_count_as_running():
    """A set-up longer than the limit of a task is no timeout; one longer than its own limit is."""
    with Worker(partial(slow_setup, 1.0), limit_s=0.5) as worker:
        assert one(worker, "add", 1) == TaskResult(1)
    with (
        Worker(partial(slow_setup, 60.0), limit_s=0.5, start_limit_s=0.5) as worker,
        pytest.raises(TargetError, match=r"0\.5 s"),
    ):
        one(worker, "add", 1)


def test_waiting_for_nothing_returns_at_once():
    """No task, no wait."""
    assert wait([Worker(setup, 1.0)]) == []


def test_closing_leaves_no_process_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Busy or idle, a closed worker's process is gone and reaped, its descriptors and its log too."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(os.listdir("/proc/self/fd"))
    worker = Worker(setup, limit_s=60.0)
    reply = one(worker, "pid")
    assert isinstance(reply, TaskResult)
    worker.submit("busy", "spin", 60)
    wait([worker], 0.2)
    worker.close()
    assert not Path(f"/proc/{reply.value}").exists()
    assert list(tmp_path.iterdir()) == []
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1  # multiprocessing's own resource tracker


ORPHANS = """
import sys
import time
sys.path.insert(0, sys.argv[1])
from looptune.tune.execution.process import ProcessCache, preload
from looptune.tune.execution.pool import Pool
from looptune.tune.execution.worker import Worker, wait
from tests.helpers.worker_tasks import one, setup
pool = Pool(setup, 3, 60.0)
pids = []
for n in range(3):
    pool.submit(n, "sleep", 0.5)
while pool.load:
    wait(pool.workers)
for n, worker in enumerate(pool.workers):
    pids.append(one(worker, "pid").value)
spare = Worker(setup, 60.0, spares=ProcessCache())
pids.append(one(spare, "pid").value)
spare.close()
preload(["looptune.core.errors"])
copies = [Worker(setup, 60.0, spares=ProcessCache(copied=True)) for _ in range(2)]
pids += [one(copy, "pid").value for copy in copies]
copies[0].submit(1, "spin", 60)
pool.workers[1].submit(1, "sleep", 60)
pool.workers[2].submit(2, "spin", 60)
wait(pool.workers, 0.3)
print(*pids, flush=True)
time.sleep(60)
"""


@pytest.mark.wide
def test_workers_die_with_a_killed_coordinator():
    """kill -9 of the coordinator: idle, spare, busy in Python and stuck in native code, no worker outlives it."""
    process = subprocess.Popen([sys.executable, "-c", ORPHANS, str(ROOT)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 6
    assert not any(gone(pid) for pid in pids)
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 5.0
    while not all(gone(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(gone(pid) for pid in pids)
