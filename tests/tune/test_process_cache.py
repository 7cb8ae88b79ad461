"""Spares: a process goes from worker to worker, and brings nothing along but what it has imported."""

from __future__ import annotations

import os
import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from looptune.cli.main import cli
from looptune.core.errors import TargetError
from looptune.core.floating_point import DEFAULT
from looptune.runtime.outcome import Crashed, TimedOut
from looptune.runtime.targets import Model
from looptune.tune.execution import worker as worker_module
from looptune.tune.execution.executor import measure_all
from looptune.tune.execution.lab import PlainLab, SweepResult
from looptune.tune.execution.local_executor import HERE, LocalExecutor, LocalWorkers
from looptune.tune.execution.pool import Pool
from looptune.tune.execution.process import ProcessCache, Setup, WorkerProcess, spawn
from looptune.tune.execution.worker import Worker, wait
from looptune.tune.execution.worker_loop import TaskError, TaskResult
from looptune.tune.session.budget import Budget
from looptune.tune.store.store import Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers import local_sweep
from tests.helpers.fake_devices import SPACE, Lab, runs
from tests.helpers.worker_tasks import broken_setup, gone, one, setup, slow_setup


@pytest.fixture
def spares() -> Iterator[ProcessCache]:
    with ProcessCache() as spares:
        yield spares


def pid(worker: Worker) -> int:
    reply = one(worker, "pid")
    assert isinstance(reply, TaskResult)
    return int(reply.value)


def served(spares: ProcessCache, *task: Any, make: Setup = setup, kind: str = "a") -> int:
    """The process that a worker has, and leaves behind; it runs the task before."""
    with Worker(make, limit_s=5.0, spares=spares, kind=kind) as worker:
        if task:
            one(worker, *task)
        return pid(worker)


def test_a_process_that_is_still_starting_is_taken(spares: ProcessCache) -> None:
    """It is set up for the kernel after the set-up that it was started with; one that fails there is replaced."""
    spares.start("a", 2, setup, 10.0)
    spares.start("a", 2, setup, 10.0)
    started = {life.process.pid for life in spares._idle["a"]}
    assert len(started) == 2
    assert served(spares, make=partial(slow_setup, 0.1)) in started
    spares.start("b", 1, broken_setup, 10.0)
    broken = spares._idle["b"][0].process.pid
    assert served(spares, kind="b") != broken


def test_a_closed_worker_leaves_its_process_to_the_next(spares: ProcessCache) -> None:
    """The same process, set up anew: it answers by the new set-up."""
    first = served(spares, "add", 1, make=partial(setup, 100))
    with Worker(partial(setup, 200), limit_s=5.0, spares=spares, kind="a") as worker:
        assert one(worker, "add", 1) == TaskResult(201)
        assert pid(worker) == first


def test_kinds_are_kept_apart(spares: ProcessCache) -> None:
    """A process is only taken for the kind it was left by; without spares it ends with its worker."""
    first = served(spares)
    assert served(spares, kind="b") != first
    with Worker(setup, limit_s=5.0) as worker:
        alone = pid(worker)
        assert alone != first
    assert gone(alone)
    assert served(spares) == first


def test_a_pool_starts_with_the_processes_of_the_last(spares: ProcessCache) -> None:
    """Both of two, and a third one is new."""
    pids = []
    for size in (2, 3):
        with Pool(setup, size, 5.0, spares) as pool:
            for worker in pool.workers:
                worker.start()
            pids.append({pid(worker) for worker in pool.workers})
    assert len(pids[0]) == 2
    assert len(pids[1]) == 3
    assert pids[0] < pids[1]


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("how", ["busy", "not ready", "overdue", "crashed", "killed idle", "ended"])
def test_only_a_sound_and_idle_process_is_kept(spares: ProcessCache, how: str) -> None:
    """One that runs something, is not set up, was killed, or is ended for what it said, dies with its worker."""
    make = partial(slow_setup, 60.0) if how == "not ready" else setup
    worker = Worker(make, limit_s=0.5, spares=spares, kind="a")
    if how == "not ready":
        worker.start()
    else:
        first = pid(worker)
    match how:
        case "busy":
            worker.submit("busy", "spin", 60)
        case "overdue":
            assert one(worker, "sleep", 60) == TimedOut(0.5)
        case "crashed":
            assert one(worker, "kill", signal.SIGKILL) == Crashed("SIGKILL\nbefore the end")
        case "killed idle":
            os.kill(first, signal.SIGKILL)
            time.sleep(0.2)
        case "ended":
            assert isinstance(one(worker, "raise"), TaskError)
            worker.end()
    worker.close()
    assert spares.take("a") is None
    assert how == "not ready" or gone(first)


def test_a_process_that_died_as_a_spare_is_passed_over(spares: ProcessCache) -> None:
    """The next one is taken, and a new one where there is none."""
    with Pool(setup, 2, 5.0, spares) as pool:
        for worker in pool.workers:
            worker.start()
        both = [pid(worker) for worker in pool.workers]
    for victim in both[::-1]:
        os.kill(victim, signal.SIGKILL)
        time.sleep(0.2)
        left = [p for p in both if not gone(p)]
        with Pool(setup, 1, 5.0, spares) as pool:
            found = pid(pool.workers[0])
            assert found in left if left else found not in both
            pool.workers[0].end()
        if left:
            break


def test_a_process_with_the_set_up_wanted_is_preferred(spares: ProcessCache) -> None:
    """Of two of one kind, whichever was left first; without one the other is set up anew."""
    with (
        Worker(partial(setup, 1), limit_s=5.0, spares=spares, kind="a") as one_,
        Worker(partial(setup, 2), limit_s=5.0, spares=spares, kind="a") as two,
    ):
        pids = {1: pid(one_), 2: pid(two)}
    for number in (2, 1, 1, 2):
        assert served(spares, make=partial(setup, number)) == pids[number]
    assert served(spares, make=partial(setup, 3)) in pids.values()


class Held:
    """Memory that only a collector finds."""

    def __init__(self, journal: Path, name: str) -> None:
        self.circle = self
        weakref.finalize(self, note, journal, f"{name} freed").atexit = False

    def __call__(self, *task: Any) -> int:
        return os.getpid()


def note(journal: Path, text: str) -> None:
    with journal.open("a") as file:
        file.write(f"{text}\n")


def holding(journal: Path, name: str) -> Callable[..., Any]:
    note(journal, f"{name} set up")
    return Held(journal, name)


@pytest.mark.wide
def test_what_was_set_up_is_freed_before_the_next(spares: ProcessCache, tmp_path: Path) -> None:
    """So that two kernels' arrays are never on a device at once; what is asked for again is kept."""
    journal = tmp_path / "journal"
    found = [served(spares, make=partial(holding, journal, name)) for name in ("a", "a", "b")]
    assert found[0] == found[1] == found[2]
    assert journal.read_text().split("\n") == ["a set up", "a freed", "b set up", ""]


def fresh_only(fault: str, journal: Path, number: int) -> Callable[..., Any]:
    """Fails in a process that has served before."""
    first = "looptune_test_served" not in sys.modules
    sys.modules["looptune_test_served"] = sys
    note(journal, "new" if first else "used")
    if not first:
        match fault:
            case "raises":
                raise RuntimeError("out of memory on the device")
            case "dies":
                os._exit(3)
            case "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hangs":
                time.sleep(60)
    return setup()


@pytest.mark.sampled(3)
@pytest.mark.wide
@pytest.mark.parametrize("fault", ["raises", "dies", "is killed", pytest.param("hangs", marks=pytest.mark.long)])
def test_what_a_used_process_cannot_set_up_a_new_one_does(spares: ProcessCache, fault: str, tmp_path: Path) -> None:
    """The fault may be the former kernel's: the task is kept, and answered by a process of its own."""
    make = partial(fresh_only, fault, tmp_path / "journal")
    first = served(spares, make=partial(make, 1))
    with Worker(partial(make, 2), limit_s=5.0, start_limit_s=8.0, spares=spares, kind="a") as worker:
        assert pid(worker) != first
    assert (tmp_path / "journal").read_text().split() == ["new", "used", "new"]
    assert gone(first)


def test_a_set_up_that_fails_anywhere_is_the_users_to_know(spares: ProcessCache) -> None:
    """In a used process and then in a new one; nothing is left in the spares."""
    served(spares)
    with (
        Worker(broken_setup, limit_s=5.0, spares=spares, kind="a") as worker,
        pytest.raises(TargetError, match="no device here"),
    ):
        one(worker, "add")
    assert spares.take("a") is None


def talkative(text: str) -> Callable[..., Any]:
    print(text, file=sys.stderr, flush=True)
    return setup()


@pytest.mark.wide
def test_a_crash_quotes_its_own_kernel(spares: ProcessCache) -> None:
    """What a process wrote for the kernel before is no evidence, what it wrote for this one is."""
    served(spares, "raise", make=partial(talkative, "of the first kernel"))
    with Worker(partial(talkative, "of the second"), limit_s=5.0, spares=spares, kind="a") as worker:
        worker.start()
        while worker.waiting_for is not None:
            wait([worker])
        life = worker._life
        assert life is not None
        assert os.pread(life.log, 100, 0) == b"of the second\n"
        assert one(worker, "kill", signal.SIGKILL) == Crashed("SIGKILL\nbefore the end")


def test_closed_spares_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, no descriptor, no file."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(os.listdir("/proc/self/fd"))
    with ProcessCache() as spares:
        found = [served(spares, kind=kind) for kind in "ab"]
    assert all(gone(p) for p in found)
    assert list(tmp_path.iterdir()) == []
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1  # multiprocessing's own resource tracker


# -- sweeps ---------------------------------------------------------------------------------------------------------


def swept(folder: Path, lab: Lab, spares: ProcessCache, devices: Sequence[str]) -> tuple[SweepResult, set[int]]:
    """The result, and the processes that measured."""
    folder.mkdir()
    open_workers = partial(LocalWorkers, jobs=1, timeout_s=5.0, spares=spares, devices=(tuple(devices),))
    journal = folder / "journal"
    with Store.open(folder / "store") as store:
        (result,) = local_sweep.swept(
            [(replace(lab, journal=journal, devices=len(devices)), Exhaustive(SPACE))], store, open_workers,
            budget=Budget(), progress=lambda progress: None, first=(),
        )  # fmt: skip
    return result, {run.pid for run in runs(journal)}


@pytest.mark.wide
def test_a_device_keeps_its_process_from_sweep_to_sweep(spares: ProcessCache, tmp_path: Path) -> None:
    """Another device has another one, and both are sound: every version is measured."""
    lab = Lab(tmp_path / "journal", measure_s=0.0)
    found = {}
    for n, device in enumerate(("0", "1", "0", "1")):
        result, found[n] = swept(tmp_path / str(n), lab, spares, [device])
        assert (result.counts["timed"], len(found[n])) == (11, 1)
    assert found[0] == found[2] != found[1] == found[3]
    result, both = swept(tmp_path / "both", replace(lab, meet=True, measure_s=0.05), spares, ["1", "0"])
    assert both == found[0] | found[1]


@pytest.mark.wide
def test_a_process_with_a_device_error_does_not_measure_again(spares: ProcessCache, tmp_path: Path) -> None:
    """Neither in its own sweep nor in the next, where its successor goes on."""
    lab = Lab(tmp_path / "journal", measure_s=0.0, fault="raises")
    result, first = swept(tmp_path / "a", lab, spares, ["0"])
    assert (result.counts["crashed"], len(first)) == (1, 2)
    bad = runs(tmp_path / "a" / "journal")[0].pid
    _, second = swept(tmp_path / "b", replace(lab, fault=""), spares, ["0"])
    assert second == first - {bad}


class Counted:
    """How many processes were started."""

    def __init__(self) -> None:
        self.lives: list[WorkerProcess] = []

    def __call__(self, setup: Setup, limit_s: float, *, copied: bool = False) -> WorkerProcess:
        self.lives.append(spawn(setup, limit_s, copied=copied))
        return self.lives[-1]


KERNEL = "void f(int n, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] += 2 * x[i]; }\n"


@pytest.mark.long
def test_a_command_starts_each_process_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kernels swept and their finals take one process that compiles and one that measures; none outlives the
    command."""
    counted = Counted()
    monkeypatch.setattr(worker_module, "spawn", counted)
    monkeypatch.chdir(tmp_path)
    for name in ("f.c", "g.c"):
        Path(name).write_text(KERNEL.replace("f(", f"{name[0]}("))
        Path(name).with_suffix(".pragmas").write_text("loop i: unroll 2\n")
    line = "run f.c g.c -D n=300 --sweep --target numba-cpu --db db --reports r --jobs 1 --quiet"
    done = CliRunner().invoke(cli, line.split(), standalone_mode=False)
    assert (done.exception, done.return_value) == (None, 0), done.output
    assert len(counted.lives) == 2
    for life in counted.lives:
        with pytest.raises(ValueError, match="closed"):
            life.process.is_alive()


def test_finals_that_fail_leave_no_process(spares: ProcessCache, tmp_path: Path) -> None:
    """After an exception in the finals the device's process is not used again."""
    (model,) = HERE.models("numba-cpu", tmp_path, floats=DEFAULT, warm=False)
    executor = LocalExecutor(None, spares)
    first = asked(executor, model, "pid")
    assert asked(executor, model, "pid") == first
    assert isinstance(asked(executor, model, "raise"), TaskError)
    assert asked(executor, model, "pid") != first
    assert gone(first.value)


@pytest.mark.wide
def test_a_device_that_is_free_takes_the_next_finals(tmp_path: Path) -> None:
    """It does not wait for those on another device."""
    (model,) = HERE.models("numba-cpu", tmp_path, floats=DEFAULT, warm=False)
    two = replace(model, numbers=(0, 1))
    last = tmp_path / "last"
    tasks = [("await", last), ("x", 1), ("x", 2), ("make", last)]
    labs = [PlainLab(setup, (partial(answering, None),) * 2)] * len(tasks)
    with HERE.open(labs, [two] * len(tasks), 1, 30.0, exclusive=True) as workers:
        ended = [number for number, _ in measure_all(workers, {n: (task,) for n, task in enumerate(tasks)})]
    assert ended[:2] == [1, 2], "the two that are left end together, in either order"


def answering(_: object) -> Callable[[tuple[str, Any]], Any]:
    def run(task: tuple[str, Any]) -> Any:
        what, value = task
        if what == "make":
            value.touch()
        while what == "await" and not value.exists():
            time.sleep(0.01)
        return value

    return run


def asked(executor: LocalExecutor, model: Model, task: str) -> Any:
    with executor.open([PlainLab(setup, (setup,))], [model], 1, 5.0, exclusive=True) as workers:
        ((_, reply),) = measure_all(workers, {0: (task,)})
    return reply
