"""How a sweep ends before its space does: out of time, interrupted, killed, without a device or a disk."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from looptune.core.errors import StoreError, TargetError
from looptune.runtime.outcome import Crashed
from looptune.tune.execution.lab import Progress
from looptune.tune.execution.process import Setup
from looptune.tune.session.budget import Budget
from looptune.tune.session.coordinator import Coordinator
from looptune.tune.session.statistics import SweepStatistics
from looptune.tune.space.space import Configuration, parse
from looptune.tune.store.store import Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers.fake_lab import FakeLab, end_budget_after, ran, run
from tests.helpers.local_sweep import sweep
from tests.helpers.paths import ROOT


@pytest.fixture
def lab(tmp_path: Path) -> FakeLab:
    return FakeLab(tmp_path / "journal")


@pytest.mark.wide
def test_a_sweep_without_a_time_goes_on(lab: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the budget is over, what is being built is still measured, as long as nothing has a time, and no more."""
    monkeypatch.setattr(SweepStatistics, "left_s", lambda tally: -0.1 if ran(lab, "compile") else 0.02)
    result = run(lab, tmp_path, budget=Budget(seconds=60.0))
    assert len(ran(lab, "measure")) == 1
    assert result.counts["timed"] == 1


def test_a_sweep_that_only_asked_goes_on(lab: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the budget is over before a process has judged the first version, which is measured."""
    asked: list[Configuration] = []
    ask = Coordinator._ask

    def asks(self: Coordinator) -> bool:
        asked.append(Configuration(()))
        return ask(self)

    monkeypatch.setattr(Coordinator, "_ask", asks)
    monkeypatch.setattr(SweepStatistics, "left_s", lambda tally: -0.1 if asked else 0.02)
    result = run(lab, tmp_path, budget=Budget(seconds=60.0))
    assert (len(asked), result.counts["timed"]) == (1, 1)


def test_a_sweep_without_a_time_ends_after_its_budget_again(
    lab: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not go on for longer than the budget once more."""
    monkeypatch.setattr(SweepStatistics, "left_s", lambda tally: -60.0 if ran(lab, "compile") else 0.02)
    assert run(lab, tmp_path, budget=Budget(seconds=60.0)).counts["timed"] == 0
    assert not ran(lab, "measure")


@pytest.mark.wide
def test_a_budget_of_seconds_ends_the_sweep(lab: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """At the end of the time the running measurement is kept, nothing is begun, and nothing is left running."""
    end_budget_after(monkeypatch, lab, measurements=5)
    slow = FakeLab(lab.journal, measure_s=0.2)
    result = run(slow, tmp_path, parse("loop k: unroll {2..1000}", "s"), budget=Budget(seconds=1.0))
    assert result.counts["timed"] == len(ran(lab, "measure")) == 5
    with Store.open(tmp_path / "store") as store:
        assert {row.status for row in store.rows()} == {"timed"}


@pytest.mark.wide
@pytest.mark.parametrize(("before", "overrun_s", "timed"), [(0, 0.3, 0), (2, 1.2, 2)])
def test_a_run_is_stopped_after_the_overrun(
    lab: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, overrun_s: float, timed: int
) -> None:
    """What still runs then is as if it had not been begun; with a time, a quarter of the overrun is left."""
    over: list[float] = []

    def left_s(tally: SweepStatistics) -> float:
        if len(ran(lab, "measure")) <= before:
            return 0.02
        over[:] = over or [time.monotonic()]
        return over[0] - time.monotonic()

    monkeypatch.setattr(SweepStatistics, "left_s", left_s)
    space = parse("loop k: { fast | forever }", "s") if before else parse("loop k: forever", "s")
    first = (Configuration(("loop k: forever",)),) if not before else (Configuration(()),)
    budget = Budget(seconds=60.0, overrun_s=overrun_s)
    result = run(lab, tmp_path, space, budget=budget, timeout_s=60.0, first=first)
    assert 0.3 <= time.monotonic() - over[0] < 20
    assert result.counts["timed"] == timed
    with Store.open(tmp_path / "store") as store:
        assert [row.status for row in store.rows()] == ["timed"] * timed


@pytest.mark.wide
def test_ctrl_c_keeps_everything_measured(lab: FakeLab, tmp_path: Path):
    """KeyboardInterrupt anywhere: the result says so, and what was being measured is no crash but run again."""

    def interrupt(progress: Progress) -> None:
        if progress.done == 3:
            time.sleep(0.3)  # the fourth is being measured by now
            raise KeyboardInterrupt

    slow = FakeLab(lab.journal, measure_s=0.5)
    space = parse("loop k: unroll {2..6}", "s")
    result = run(slow, tmp_path, space, progress=interrupt)
    assert result.interrupted
    assert result.counts["timed"] == 3
    again = run(lab, tmp_path, space)
    assert (again.resumed, again.counts["timed"], again.counts["crashed"]) == (3, 6, 0)


SWEEP = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.helpers.fake_lab import FakeLab, run
from looptune.tune.space.space import parse
tmp = Path(sys.argv[2])
lab = FakeLab(tmp / "journal", measure_s=float(sys.argv[3]))
result = run(lab, tmp, parse("loop k: unroll {2..9}", "s"), timeout_s=60)
print("interrupted" if result.interrupted else "done", result.counts["timed"], flush=True)
"""


def in_another_process(tmp_path: Path, measure_s: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SWEEP, str(ROOT), str(tmp_path), str(measure_s)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for_measurements(lab: FakeLab, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(ran(lab, "measure")) < count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(ran(lab, "measure")) >= count


@pytest.mark.wide
def test_kill_9_names_the_culprit_and_the_sweep_goes_on(lab: FakeLab, tmp_path: Path):
    """Killed in the fourth measurement: it reads as Crashed, is not run again, and the three before are not lost."""
    process = in_another_process(tmp_path, 1.5)
    wait_for_measurements(lab, 4)
    process.kill()
    process.communicate()
    result = run(lab, tmp_path, parse("loop k: unroll {2..9}", "s"))
    assert (result.resumed, result.counts["timed"], result.counts["crashed"]) == (4, 8, 1)
    assert len(ran(lab, "measure")) == 9
    with Store.open(tmp_path / "store") as store:
        (culprit,) = [row for row in store.rows() if row.status == "crashed"]
    assert culprit.outcome == Crashed("the process died while this ran")
    assert repr(culprit.directives) in ran(lab, "measure")[3]


@pytest.mark.wide
def test_ctrl_c_on_the_terminal_is_quiet(lab: FakeLab, tmp_path: Path):
    """SIGINT to the whole process group, as a terminal sends it: workers print no traceback, the result stands."""
    process = in_another_process(tmp_path, 1.5)
    wait_for_measurements(lab, 3)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert err == ""
    assert re.fullmatch(r"interrupted [2-8]\n", out), out


@pytest.mark.wide
def test_a_laboratory_that_cannot_start_ends_the_sweep(lab: FakeLab, tmp_path: Path):
    """No device is the user's to know at once, not a crash of every configuration."""
    with pytest.raises(TargetError, match="cannot start"):
        run(NoDevice(lab.journal), tmp_path, parse("loop k: unroll {2..9}", "s"))
    with Store.open(tmp_path / "store") as store:
        assert [*store.rows()] == []


class NoDevice(FakeLab):
    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        return (no_device,)


def no_device() -> Any:
    raise RuntimeError("no CUDA device")


def test_a_full_disk_ends_the_sweep_with_its_rows(lab: FakeLab, tmp_path: Path):
    """A StoreError, no worker left, and every row before it in place."""
    with Store.open(tmp_path / "store") as store:
        pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
        store.connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        space = parse("loop k: { illegal {1..1000} }", "s")
        with pytest.raises(StoreError, match="full"):
            sweep(
                lab, Exhaustive(space), store, budget=Budget(), jobs=1, timeout_s=1, progress=lambda p: None, first=()
            )
        assert len(list(store.rows())) > 5
