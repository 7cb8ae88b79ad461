"""Faults: whatever happens to a version, a process, the disk or the clock, a sweep ends with what it measured.

Moments are random; a failure prints the seed, and ``LOOPTUNE_SEED`` repeats it.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from looptune.backends.base import Resources
from looptune.ir.nodes import Assign, Binary, Call, Codelet, Const, Load, Var, While
from looptune.runtime.outcome import Crashed, NotBuilt, Outcome, Timed, TimedOut, WrongResult
from looptune.schedule.apply import ScheduleResult
from looptune.tune.execution.lab import NextStep, Progress
from looptune.tune.execution.process import Setup
from looptune.tune.incumbent import Incumbent
from looptune.tune.measure.build_steps import Built
from looptune.tune.measure.device_limits import exceeded
from looptune.tune.measure.evaluate import Job, KernelBuilder, compiler, measurer
from looptune.tune.session import prepare
from looptune.tune.session.budget import Budget
from looptune.tune.space.space import Configuration, parse
from looptune.tune.store.store import Context, Row, Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers.kill_resume import VERSIONS, finished, ran, sweep_of
from tests.helpers.local_sweep import sweep
from tests.helpers.paths import ROOT

LIMIT_S = 10.0


@pytest.fixture
def seed() -> int:
    given = os.environ.get("LOOPTUNE_SEED")
    chosen = random.SystemRandom().randrange(10**6) if given is None else int(given)
    print(f"LOOPTUNE_SEED={chosen}")
    return chosen


# -- versions that misbehave: real kernels with a planted fault, built and run as any other ------------------------

KERNEL = """
void f(int n, float x[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] += 2 * x[i];
}
"""
FAULTS = {2: "forever", 3: "outside", 4: "nan", 5: "compiler killed", 6: "worker killed", 7: "compiler broken"}
"""What is planted in ``loop i: unroll U``, by U; any other is sound."""


def planted(configuration: Configuration) -> str:
    return FAULTS.get(int(configuration.text.rpartition(" ")[2]), "") if configuration.lines else ""


class FaultyLab(KernelBuilder):
    """The real laboratory, but for what is planted."""

    __slots__ = ()

    @property
    def compile_setup(self) -> Setup:
        return partial(faulty_compiler, self.job, self.context)

    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        return (partial(faulty_measurer, self.job),)

    def scheduled(self, configuration: Configuration) -> ScheduleResult:
        done = super().scheduled(configuration)
        return replace(done, codelet=faulty(done.codelet, planted(configuration)))


def faulty(codelet: Codelet, fault: str) -> Codelet:
    first, beyond = Load("y", (Const(0),), "float32"), Load("y", (Var("n"),), "float32")
    match fault:
        case "forever":
            more: tuple[Any, ...] = (While(Binary(">", Var("n"), Const(0)), (Assign(first, first),)),)
        case "outside":
            more = (Assign(beyond, Const(7.0, "float32")),)
        case "nan":
            more = (Assign(first, Call("sqrt", (Const(-1.0, "float32"),), "float32")),)
        case _:
            more = ()
    return replace(codelet, body=(*codelet.body, *more))


def faulty_compiler(job: Job, context: Context) -> Callable[[str, Any], Any]:
    lab = FaultyLab(job, context)
    work = compiler(job, context)

    def faulted(step: str, given: Any) -> Any:
        if step == "build":
            return work(step, given)
        match planted(given):
            case "compiler killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "compiler broken":
                raise AssertionError("a loop has two names")
        return lab.prepare(given)

    return faulted


def faulty_measurer(job: Job) -> Callable[[Built, Incumbent | None], Outcome | NextStep]:
    measure = measurer(job)

    def faulted(built: Built, best: Incumbent | None) -> Outcome | NextStep:
        if "unroll 6" in built.binary.plan.schedule_text:
            os.kill(os.getpid(), signal.SIGKILL)
        return measure(built, best)

    return faulted


@dataclass(frozen=True)
class Faulted:
    rows: dict[str, Row]
    """By the fault planted; "" for those without one."""
    counts: dict[str, int]
    sound: int


@pytest.fixture(scope="module")
def faulted(tmp_path_factory: pytest.TempPathFactory) -> Faulted:
    """One sweep over versions with every fault and two without, on the CPU."""
    folder = tmp_path_factory.mktemp("faulted")
    (folder / "f.c").write_text(KERNEL)
    request = prepare.TuningRequest(folder / "f.c", defines={"n": "300"}, target="numba-cpu")
    prepared = prepare.prepare(request)
    job = replace(prepared.job, cache=folder / "cache")
    space = parse("loop i: unroll {2..9}", "s")
    with Store.open(folder / "db") as store:
        result = sweep(
            FaultyLab(job, prepared.context), Exhaustive(space), store, budget=Budget(), jobs=2, timeout_s=LIMIT_S,
            progress=lambda progress: None, overlap=False,
        )  # fmt: skip
        rows = list(store.rows())
    named = {planted(Configuration(tuple(row.directives.splitlines()))): row for row in rows}
    return Faulted(named, dict(result.counts), len(result.timed))


@pytest.mark.wide
def test_a_kernel_that_loops_for_ever(faulted: Faulted) -> None:
    """Killed at the limit, which the row says."""
    assert faulted.rows["forever"].outcome == TimedOut(LIMIT_S)


@pytest.mark.wide
def test_a_kernel_that_writes_out_of_bounds(faulted: Faulted) -> None:
    """The canary behind the array shows it: the row says which array, on which side, how far."""
    outcome = faulted.rows["outside"].outcome
    assert outcome == WrongResult("y: 1 elements written after the array, the nearest 1 outside of it")


@pytest.mark.wide
def test_a_kernel_that_returns_nan(faulted: Faulted) -> None:
    """A NaN where the original has a number is a wrong result, with its element."""
    outcome = faulted.rows["nan"].outcome
    assert isinstance(outcome, WrongResult)
    assert outcome.message.startswith("y[0]: got nan, expected ")


@pytest.mark.wide
def test_a_compiler_process_killed(faulted: Faulted) -> None:
    """A compiling process that is killed costs the version it had; the row names the signal."""
    assert faulted.rows["compiler killed"].outcome == Crashed("before it was compiled: SIGKILL")


@pytest.mark.wide
def test_a_mistake_of_ours_costs_one_version(faulted: Faulted) -> None:
    """An assertion in the passes that prepare a version is its outcome, and not the sweep's end."""
    outcome = faulted.rows["compiler broken"].outcome
    assert outcome == NotBuilt("before it was compiled: AssertionError: a loop has two names")


@pytest.mark.wide
def test_the_measuring_worker_killed(faulted: Faulted) -> None:
    """A measuring process that is killed costs the version it ran; the row names the signal."""
    assert faulted.rows["worker killed"].outcome == Crashed("SIGKILL")


@pytest.mark.wide
def test_the_sweep_goes_on_after_every_fault(faulted: Faulted) -> None:
    """What is sound is timed, before and after the faults, and each class is counted."""
    assert faulted.sound == 3  # the default, unroll 8 and 9
    assert isinstance(faulted.rows[""].outcome, Timed)
    expected = {"timed": 3, "wrong": 2, "crashed": 2, "timed_out": 1, "not_built": 1, "duplicate": 0}
    assert {status: faulted.counts[status] for status in expected} == expected


# -- the coordinator stopped ----------------------------------------------------------------------------------------


def kill_and_resume(folder: Path, seed: int, rounds: int, name: str) -> None:
    command = [sys.executable, "-m", "tests.helpers.kill_resume", str(folder), str(seed), str(rounds), name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    print(done.stdout)
    # Python's own words of a process that had just been begun when its parent was killed.
    orphaned = r"Traceback \(most(?:.(?!Traceback))*?spawn_main(?:.(?!Traceback))*?\nEOFError: Ran out of input\n"
    said = re.sub(orphaned, "", done.stderr, flags=re.DOTALL) if name == "SIGKILL" else done.stderr
    assert (done.returncode, said) == (0, "")


@pytest.mark.long
def test_the_coordinator_killed_at_20_random_moments(tmp_path: Path, seed: int) -> None:
    """kill -9, resumed, 20 times: nothing finished is lost or runs again, and each kill costs at most the version that
    it interrupted, which reads as crashed."""
    kill_and_resume(tmp_path, seed, 20, "SIGKILL")
    assert max(Counter(ran(tmp_path)).values()) == 1
    done = finished(tmp_path)
    with Store.open(tmp_path / "store") as store:
        statuses = Counter(row.status for row in store.rows())
    assert statuses["crashed"] <= 20
    assert statuses["crashed"] + len(done) == VERSIONS == sum(statuses.values())
    assert statuses["illegal"] == VERSIONS // 7


@pytest.mark.long
def test_ctrl_c_at_random_moments(tmp_path: Path, seed: int) -> None:
    """Ctrl-C, resumed, 10 times: nothing finished is lost or runs again, and nothing reads as crashed."""
    kill_and_resume(tmp_path, seed, 10, "SIGINT")
    done = finished(tmp_path)
    assert len(done) == VERSIONS
    assert Counter(row.status for row in done.values()) == {
        "timed": VERSIONS - VERSIONS // 7,
        "illegal": VERSIONS // 7,
    }
    assert max(Counter(ran(tmp_path)).values()) <= 11


def looptune(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "looptune", "run", "f.c", "-D", "n=300", "--target", "numba-cpu", "--sweep",
               "--space", "f.space", "--db", "db", "--reports", "r", *more]  # fmt: skip
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def statuses(folder: Path) -> Counter[str]:
    if not (folder / "db").exists():
        return Counter()
    with Store.read(folder / "db") as store:
        return Counter(row.status for row in store.rows() if row.role in ("default", "version"))


@pytest.mark.long
def test_ctrl_c_on_the_command_line(tmp_path: Path, seed: int) -> None:
    """`looptune run` interrupted at three random moments: exit code 130 and no traceback, or done; no row in doubt."""
    (tmp_path / "f.c").write_text(KERNEL)
    (tmp_path / "f.space").write_text("loop i: unroll {2..20}\n")
    moments = random.Random(seed)
    count = 0
    for _ in range(3):
        process = looptune(tmp_path)
        # Python itself prints a traceback when it is interrupted before the program has begun.
        time.sleep(moments.uniform(1.5, 6.0))
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode in (0, 1, 130), err
        assert "Traceback" not in err
        found = statuses(tmp_path)
        assert found.keys() <= {"timed"}
        assert found["timed"] >= count
        count = found["timed"]


# -- two at once ----------------------------------------------------------------------------------------------------

TOGETHER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.helpers.kill_resume import sweep_of
if __name__ == "__main__":
    result = sweep_of(Path(sys.argv[2]), 0.02, "loop k: unroll {1..60}")
    print(result.counts["timed"], result.counts["illegal"], result.counts["crashed"])
"""


@pytest.mark.wide
def test_two_sweeps_at_once_share_the_work(tmp_path: Path) -> None:
    """Both end with every version, each of which ran once; both have run some."""
    (tmp_path / "together.py").write_text(TOGETHER)
    command = [sys.executable, str(tmp_path / "together.py"), str(ROOT), str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in "ab"]
    said = [process.communicate(timeout=120) for process in both]
    assert said == [("52 8 0\n", "")] * 2
    assert sorted(ran(tmp_path)) == [n for n in range(1, 61) if n % 7]
    with Store.open(tmp_path / "store") as store:
        rows = list(store.rows())
    assert Counter(row.status for row in rows) == {"timed": 52, "illegal": 8}
    assert len({row.sweep for row in rows if row.status == "timed"}) == 2


# -- the disk, the clock, the device --------------------------------------------------------------------------------


@pytest.fixture(params=["a small file system", "a limit on files"])
def cramped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder whose database soon has no room, and what to set for a process that writes there."""
    if request.param == "a limit on files":
        yield tmp_path, "resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))"
        return
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("mounting a file system is not permitted here")
    yield folder, "pass"
    subprocess.run(["umount", "-l", folder], check=True)


FILLS = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.helpers.kill_resume import sweep_of
from looptune.core.errors import StoreError
if __name__ == "__main__":
    exec(sys.argv[3])
    try:
        sweep_of(Path(sys.argv[2]), 0.0)
    except StoreError as error:
        print(error)
"""


@pytest.mark.wide
def test_the_disk_filled(cramped: tuple[Path, str], tmp_path: Path) -> None:
    """One message that names the database; every row before it is whole, and there is no damage."""
    folder, limit = cramped
    (tmp_path / "fills.py").write_text(FILLS)
    command = [sys.executable, str(tmp_path / "fills.py"), str(ROOT), str(folder), limit]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    full = r"database or disk is full|disk I/O error \(is there room for it\?\)"
    assert re.fullmatch(rf"{folder}/store: ({full})\n", done.stdout)
    with sqlite3.connect(folder / "store") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with Store.read(folder / "store") as store:
        rows = [row for row in store.rows() if row.finished is not None]
    assert len(rows) > 20
    assert all(row.outcome is not None for row in rows)


class Jumping:
    """A clock that is hours off at every look, forward or back."""

    def __init__(self, seed: int) -> None:
        self.moments = random.Random(seed)
        self.time = time.time

    def __call__(self) -> float:
        return self.time() + self.moments.uniform(-1e5, 1e5)


@pytest.mark.wide
def test_a_clock_that_jumps(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With time.time hours off at every look: rows in the order they began, no time-outs, an ETA from the time that
    has really passed, and a budget in seconds that lasts as long."""
    monkeypatch.setattr(time, "time", Jumping(seed))
    seen: list[Progress] = []
    result = sweep_of(tmp_path, 0.02, budget=Budget(count=40), progress=seen.append)
    assert (result.counts["timed"], result.counts["illegal"], result.elapsed_s < 100) == (35, 5, True)
    assert all(p.eta_s is None or 0.0 <= p.eta_s <= 40 * p.elapsed_s for p in seen)
    assert all(a.elapsed_s <= b.elapsed_s for a, b in pairwise(seen))
    with Store.open(tmp_path / "store") as store:
        rows = list(store.rows())
    assert [int(row.directives.rpartition(" ")[2]) for row in rows if row.status == "timed"] == ran(tmp_path)
    assert [row.started for row in rows] != sorted(row.started for row in rows)
    start = time.monotonic()
    result = sweep_of(tmp_path, 0.02, budget=Budget(seconds=1.5))
    assert 1.5 <= result.elapsed_s <= time.monotonic() - start < 20


def used(registers: int, threads: int, local_bytes: int = 0, shared_bytes: int = 0) -> Resources:
    return Resources("f_0", registers, local_bytes, shared_bytes, threads)


@pytest.mark.parametrize(
    ("takes", "message"),
    [
        (used(64, 1024), None),
        (used(255, 256), None),
        (used(65, 1024), "f_0 needs 73728 registers per block, the limit is 65536"),
        # 65280 without rounding up: a launch fails all the same.
        (used(170, 384), "f_0 needs 67584 registers per block, the limit is 65536"),
        (used(32, 1056), "f_0 needs 1056 threads per block, the limit is 1024"),
        (used(32, 32, shared_bytes=232449), "f_0 needs 232449 bytes of shared memory per block, the limit is 232448"),
        (used(32, 32, local_bytes=600_000), "f_0 needs 600000 bytes of local memory per thread, the limit is 524288"),
    ],
)
def test_what_the_device_has_too_little_of(takes: Resources, message: str | None) -> None:
    """What a block needs is counted as the device allocates it; the message has both numbers."""
    assert exceeded((used(16, 32), takes)) == message
