"""A busy machine: limits count what a process was given, a default that timed out is tried again, tables say so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from looptune.tune.execution import time_allowance
from looptune.tune.execution import worker as worker_module
from looptune.tune.execution.time_allowance import PATIENCE, Allowance
from looptune.tune.execution.worker import Worker, wait
from looptune.tune.space.space import Configuration, parse
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers.fake_lab import FakeLab, ran, run


class Clock:
    """A machine whose time, waits for a core and threads' CPU time are set by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.waited, self.threads = 100.0, 50.0, {1: 5.0, 2: 7.0}
        monkeypatch.setattr(time_allowance.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time_allowance, "waited_for_cores_s", lambda: self.waited)
        monkeypatch.setattr(time_allowance, "thread_seconds", self.seconds)

    def seconds(self, pid: int) -> Mapping[int, float]:
        return dict(self.threads)

    def passes(self, seconds: float, waited: float = 0.0, **cpu: float) -> None:
        self.now += seconds
        self.waited += waited
        for name, used in cpu.items():
            thread = int(name.removeprefix("t"))
            self.threads[thread] = self.threads.get(thread, 0.0) + used


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_on_a_quiet_machine_a_limit_is_the_time_that_passed(clock: Clock) -> None:
    """A task that computes and one that waits for a device are both stopped at the limit."""
    given = Allowance.begin(1, 10.0)
    clock.passes(9.0, t1=9.0)
    assert given.left_s() == pytest.approx(1.0)
    clock.passes(1.0)
    assert given.left_s() <= 0.0


def test_what_a_task_waits_for_a_core_is_not_its_time(clock: Clock) -> None:
    """A kernel that got a third of a core has two thirds of its limit left; the busiest thread counts, not the sum."""
    given = Allowance.begin(1, 10.0)
    clock.passes(12.0, waited=11.0, t1=4.0, t2=3.0, t3=3.5)
    assert given.left_s() == pytest.approx(6.0)
    clock.passes(18.0, waited=18.0, t1=6.0)
    assert given.left_s() <= 0.0


def test_a_task_that_does_nothing_ends_on_a_busy_machine_too(clock: Clock) -> None:
    """However long others wait for cores, PATIENCE limits are the end."""
    given = Allowance.begin(1, 10.0)
    clock.passes(10.0 * PATIENCE - 1.0, waited=10.0 * PATIENCE)
    assert given.left_s() > 0.0
    clock.passes(1.0, waited=1.0)
    assert given.left_s() <= 0.0


def test_without_counters_the_load_tells(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system does not count waits, a load of four times the cores leaves a task a quarter of the time."""
    monkeypatch.setattr(time_allowance, "waited_for_cores_s", lambda: None)
    cores = len(time_allowance.os.sched_getaffinity(0))
    monkeypatch.setattr(time_allowance.os, "getloadavg", lambda: (4.0 * cores, 0.0, 0.0))
    given = Allowance.begin(1, 10.0)
    clock.passes(20.0, t1=1.0)
    assert given.left_s() == pytest.approx(5.0)


def test_the_threads_of_this_process_are_seen() -> None:
    """The CPU time of a real process grows as it computes; of one that is gone nothing is known."""
    pid = time_allowance.os.getpid()
    before = max(time_allowance.thread_seconds(pid).values())
    while max(time_allowance.thread_seconds(pid).values()) < before + 0.02:
        sum(range(100_000))
    assert time_allowance.thread_seconds(2**22 + 1) == {}


@pytest.mark.wide
def test_a_process_that_sleeps_rests_and_one_that_computes_does_not() -> None:
    """Of what rests the time that passed counts, however busy the machine is; a child that computes is a part of it."""
    spin = "while True: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}])"
    for code, resting in (("import time; time.sleep(600)", True), (spin, False), (child, False)):
        with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as process:
            try:
                found = [time_allowance.rests(process.pid) for _ in range(40) if time.sleep(0.05) is None]
            finally:
                os.killpg(process.pid, signal.SIGKILL)
        assert (sum(found[-10:]) >= 5) == resting, code
    assert not time_allowance.rests(2**22 + 1)


@pytest.mark.wide
def test_what_the_whole_machine_did_not_run_is_no_ones_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator wakes a minute late: the process that it waits for has as much of its limit left as before."""
    with Worker(sleeper, 30.0) as worker:
        worker.submit("key", 30.0)
        life = worker.waiting_for
        assert life is not None
        while not life.ready:
            wait((worker,), 0.1)
        before, deadline = life.allowance.start, life.allowance.deadline
        late = iter((0.0, 90.0, 90.0))
        clock = time.monotonic
        monkeypatch.setattr(worker_module.time, "monotonic", lambda: clock() + next(late, 90.0))
        worker_module.sleep((worker,), 0.0)
        monkeypatch.undo()
        assert life.allowance.start - before == pytest.approx(90.0, abs=5.0)
        assert life.allowance.deadline - deadline == pytest.approx(90.0, abs=5.0)


def sleeper() -> Callable[[float], None]:
    return time.sleep


@pytest.mark.wide
def test_a_default_that_timed_out_is_measured_again(tmp_path: Path) -> None:
    """Everything is compared with it: it runs a second time, and a version of the strategy's only once."""
    lab = FakeLab(tmp_path / "journal")
    space = parse("loop k: { forever | unroll 2 }", "s")
    forever = Configuration(("loop k: forever",))
    result = run(lab, tmp_path, strategy=Exhaustive(space), first=(forever,), timeout_s=0.3)
    assert result.counts["timed_out"] == 1
    assert len(ran(lab, "measure 'loop k: forever'")) == 2
    other = FakeLab(tmp_path / "other")
    run(other, tmp_path / "again", strategy=Exhaustive(space), timeout_s=0.3)
    assert len(ran(other, "measure 'loop k: forever'")) == 1
