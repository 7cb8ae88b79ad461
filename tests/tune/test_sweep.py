"""The coordinator: every configuration ends as an outcome, in a fixed order, and nothing is run twice."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from looptune.core.errors import UsageError
from looptune.runtime.outcome import Crashed, NotBuilt, TimedOut
from looptune.tune.execution.interrupts import defer_interrupts
from looptune.tune.execution.lab import PreparedVersion, Progress
from looptune.tune.execution.local_executor import LocalWorkers
from looptune.tune.execution.process import Setup
from looptune.tune.session.budget import Budget, parse_budget
from looptune.tune.session.prepare import TuningRequest, prepare
from looptune.tune.session.statistics import KEPT, SweepStatistics
from looptune.tune.session.sweep import Part, _drive
from looptune.tune.space.space import DEFAULT, Configuration, parse
from looptune.tune.store.store import Context, Row, Store
from looptune.tune.strategies import ALL
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers.fake_lab import CONTEXT, FakeLab, end_budget_after, ran, run
from tests.helpers.fake_tasks import timed
from tests.helpers.local_sweep import MODEL, swept


@pytest.mark.wide
def test_a_version_of_two_steps(lab: FakeLab, tmp_path: Path) -> None:
    """What the second step finds counts; where nothing comes of it, what the first one found."""
    ways = ("unroll 5", "wrong", "nobuild", "segfault")
    space = parse(f"loop k: {{ {' | '.join(f'{way} {x}' for way in ('again', 'later') for x in ways)} }}", "s")
    result = run(lab, tmp_path, space)
    with Store.open(tmp_path / "store") as store:
        rows = {row.directives.removeprefix("loop k: "): row for row in store.rows()}
    assert {text: (row.status, row.median_us) for text, row in rows.items()} == {
        "": ("timed", 100.0),
        "again unroll 5": ("timed", 20.0),
        "later unroll 5": ("timed", 20.0),
        "again wrong": ("wrong", None),
        "later wrong": ("wrong", None),
        "again nobuild": ("timed", 50.0),
        "later nobuild": ("not_built", None),
        "again segfault": ("crashed", None),
        "later segfault": ("crashed", None),
    }
    counts = {name: n for name, n in result.counts.items() if n}
    assert counts == {"space": 8, "timed": 4, "wrong": 2, "not_built": 1, "crashed": 2}
    assert [row.median_us for row in result.timed] == [20.0, 20.0, 50.0, 100.0]
    assert len(ran(lab, "measure")) == 1 + 8 + 6


@pytest.mark.wide
def test_a_budget_that_ends_between_two_steps(lab: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first has found is kept and counted; a version without a time is as if it had not been begun."""
    space = parse("loop k: { again slowly | later slowly }", "s")
    end_budget_after(monkeypatch, lab, measurements=3)
    result = run(lab, tmp_path, space, budget=Budget(seconds=1.0), jobs=2, timeout_s=90.0)
    assert result.counts["timed"] == 2
    with Store.open(tmp_path / "store") as store:
        rows = sorted((row.directives, row.status) for row in store.rows())
    assert rows == [("", "timed"), ("loop k: again slowly", "timed")]


@pytest.fixture
def lab(tmp_path: Path) -> FakeLab:
    return FakeLab(tmp_path / "journal")


@pytest.mark.wide
def test_every_configuration_ends_as_an_outcome(lab: FakeLab, tmp_path: Path):
    """Crashes, hangs, lies and refusals each cost one configuration; the others are timed, and all are stored."""
    seen: list[Progress] = []
    result = run(lab, tmp_path, progress=seen.append)
    assert result.counts == {
        "space": 14,
        "timed": 5,  # default, unroll 2, 3, 4, 8
        "cut_off": 0,
        "illegal": 1,
        "not_built": 1,
        "over_limit": 1,
        "wrong": 1,
        "crashed": 3,
        "timed_out": 2,
        "duplicate": 1,  # unroll 1 is the default
    }
    assert [row.directives.rpartition(" ")[2] for row in result.timed] == ["8", "4", "3", "2", ""]
    assert result.best is not None
    assert result.best.median_us == 12.5
    assert result.default is not None
    assert (result.default.median_us, result.default.role) == (100.0, "default")
    assert not result.interrupted
    assert [p.done for p in seen] == list(range(1, 15))
    assert seen[-1].total == 14
    assert seen[-1].best == result.best
    assert seen[-1].eta_s == 0.0
    with Store.open(tmp_path / "store") as store:
        rows = {row.directives.removeprefix("loop k: "): row for row in store.rows()}
    assert len(rows) == 15
    assert rows["nobuild"].outcome == NotBuilt("RuntimeError: ptxas said no")
    assert rows["forever"].outcome == rows["hangcompiler"].outcome == TimedOut(1.0)
    assert rows["lostcontext"].outcome == Crashed("RuntimeError: CUDA_ERROR_ILLEGAL_ADDRESS")
    for name, opening in (("segfault", "SIGSEGV"), ("killcompiler", "while it compiled: SIGSEGV")):
        outcome = rows[name].outcome
        assert isinstance(outcome, Crashed)
        assert outcome.message.startswith(opening)
    assert rows["unroll 1"].same_as == rows[""].key


def test_the_best_so_far_reaches_the_measurement(lab: FakeLab, tmp_path: Path):
    """Each measurement knows the best before it, so that it can stop early."""
    run(lab, tmp_path, parse("loop k: unroll {2..4}", "s"))
    found = [float(line.rpartition("=")[2]) for line in ran(lab, "measure")[1:]]
    assert found == [100.0, 50.0, pytest.approx(100 / 3)]


@pytest.mark.wide
def test_a_second_identical_sweep_runs_nothing(lab: FakeLab, tmp_path: Path):
    """Resumed rows count toward the budget and give the same result; --fresh runs them again."""
    first = run(lab, tmp_path, count=9)
    before = len(ran(lab, ""))
    again = run(lab, tmp_path, count=9)
    assert len(ran(lab, "")) == before
    assert again.counts == first.counts
    assert sum(first.counts[c] for c in first.counts if c not in ("space", "duplicate")) == 9
    assert again.resumed == 9
    assert [r.key for r in again.timed] == [r.key for r in first.timed]
    more = run(lab, tmp_path, count=14)
    assert more.resumed == 9
    assert more.counts["timed"] == 5
    measured = len(ran(lab, "measure"))
    fresh = run(lab, tmp_path, parse("loop k: unroll {1..4}", "s"), fresh=True)
    assert fresh.resumed == 0
    assert fresh.counts["duplicate"] == 1
    assert len(ran(lab, "measure")) == measured + 4


@pytest.mark.wide
def test_the_same_source_elsewhere_is_not_run_again(lab: FakeLab, tmp_path: Path):
    """Another space that leads to a source measured before takes its outcome; another device does not."""
    run(lab, tmp_path, parse("loop k: unroll {2..3}", "s"))
    before = len(ran(lab, "measure"))
    result = run(lab, tmp_path, parse("nest i: permute i\nloop k: unroll {1..1}", "s"), first=())
    assert len(ran(lab, "measure")) == before + 1
    result = run(lab, tmp_path, parse("loop k: unroll 1", "s"), first=())
    assert len(ran(lab, "measure")) == before + 1
    assert (result.counts["timed"], result.resumed, result.timed[0].median_us) == (1, 1, 100.0)
    other = FakeLab(
        lab.journal, context=Context("gemm", "c0ffee", "1", "numba", "8.0", "A100", "cuda", "{}", "float32")
    )
    run(other, tmp_path, parse("loop k: unroll 2", "s"), first=())
    assert len(ran(lab, "measure")) == before + 2


@pytest.mark.wide
def test_texts_written_twice_are_run_once(lab: FakeLab, tmp_path: Path):
    """Overlapping sections and repeated items are duplicates, in a resumed sweep as well."""
    space = parse("loop k: unroll {2, 2, 3}\nor\nloop k: unroll {2..3}", "s")
    for _ in range(2):
        result = run(lab, tmp_path, space)
        assert (result.counts["timed"], result.counts["duplicate"]) == (3, 3)
    assert len(ran(lab, "measure")) == 3


class Learner(Exhaustive):
    """Remembers the order of questions and answers."""

    name: ClassVar[str] = "learner"
    window = 3

    def __init__(self, space: Any, seed: int = 0) -> None:
        super().__init__(space, seed)
        self.log: list[tuple[str, str, float | None]] = []

    def ask(self) -> Configuration | None:
        configuration = super().ask()
        if configuration is not None:
            self.log.append(("ask", configuration.text.removeprefix("loop k: "), None))
        return configuration

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        self.log.append(("tell", configuration.text.removeprefix("loop k: "), cost_us))


@pytest.mark.wide
def test_a_strategy_sees_the_same_order_whatever_the_speed(tmp_path: Path):
    """With a window of 3: three questions, then answer n just before question n + 3; also when resumed."""
    logs = []
    for jobs, folder in ((1, "a"), (3, "b"), (2, "a")):
        (tmp_path / folder).mkdir(exist_ok=True)
        lab = FakeLab(tmp_path / folder / "journal", compile_s=0.01)
        learner = Learner(parse("loop k: { unroll {1..3} | illegal | unroll 8 }", "s"))
        run(lab, tmp_path / folder, jobs=jobs, strategy=learner, first=())
        logs.append(learner.log)
    assert logs[0] == logs[1] == logs[2]
    assert [kind for kind, _, _ in logs[0]] == ["ask"] * 3 + ["tell", "ask"] * 2 + ["tell"] * 3
    assert [(t, c) for kind, t, c in logs[0] if kind == "tell"] == [
        ("unroll 1", 100.0),
        ("unroll 2", 50.0),
        ("unroll 3", pytest.approx(100 / 3)),
        ("illegal", None),
        ("unroll 8", 12.5),
    ]


@pytest.mark.wide
def test_duplicates_are_told_the_cost_of_the_first(lab: FakeLab, tmp_path: Path):
    """A strategy learns from a duplicate as much as from the version itself."""
    learner = Learner(parse("loop k: unroll {2, 1, 2}", "s"))
    run(lab, tmp_path, strategy=learner)
    assert [(t, c) for kind, t, c in learner.log if kind == "tell"] == [
        ("unroll 2", 50.0),
        ("unroll 1", 100.0),
        ("unroll 2", 50.0),
    ]


@dataclass(frozen=True)
class Unordered(FakeLab):
    """Preparing takes the longer the earlier a version is asked for; the versions of a factor's parity are one."""

    @property
    def compile_setup(self) -> Setup:
        return unordered


def unordered() -> Callable[[str, Any], Any]:
    def work(step: str, given: Any) -> Any:
        if step == "build":
            return ("built", given)
        factor = int(given.text.rpartition(" ")[2])
        time.sleep(0.2 / factor)
        return PreparedVersion(f"parity {factor % 2}", given.text)

    return work


@pytest.mark.wide
def test_the_first_asked_is_the_original(lab: FakeLab, tmp_path: Path):
    """Of versions with one source the one asked for first runs, though later ones are prepared earlier."""
    result = run(Unordered(lab.journal), tmp_path, parse("loop k: unroll {1..9}", "s"), jobs=4, first=())
    measured = sorted(line.split("'")[1] for line in ran(lab, "measure"))
    assert measured == ["loop k: unroll 1", "loop k: unroll 2"], "which of the two is built first depends on time"
    assert (result.counts["timed"], result.counts["duplicate"]) == (2, 7)
    with Store.open(tmp_path / "store") as store:
        rows = {row.directives: row for row in store.rows()}
    assert rows["loop k: unroll 9"].same_as == rows["loop k: unroll 1"].key


@dataclass(frozen=True)
class Unprepared(FakeLab):
    """Its processes cannot start, so everything they are asked for fails."""

    @property
    def compile_setup(self) -> Setup:
        return refused


def refused() -> Callable[[str, Any], Any]:
    raise RuntimeError("something is prepared")


@pytest.mark.wide
def test_nothing_is_prepared_again(lab: FakeLab, tmp_path: Path):
    """The database says of duplicates too what they came to; before their original they take its outcome."""
    space = parse("loop k: { illegal | unroll {1..9} | nobuild }", "s")
    first = run(lab, tmp_path, space)
    again = run(Unprepared(lab.journal), tmp_path, space)
    assert (again.counts, [r.key for r in again.timed]) == (first.counts, [r.key for r in first.timed])
    assert first.counts["duplicate"] == 1
    turned = run(Unprepared(lab.journal), tmp_path, parse("loop k: unroll {2, 1}", "s"), first=())
    assert [(row.directives[-1], row.median_us) for row in turned.timed] == [("2", 50.0), ("1", 100.0)]


@pytest.mark.wide
def test_a_budget_counts_no_duplicates(lab: FakeLab, tmp_path: Path):
    """With three versions allowed, what turns out a duplicate after it was asked for makes room for one more."""
    space = parse("loop k: unroll {1, 2, 1, 2, 3, 4, 8}", "s")
    for jobs in (1, 3):
        result = run(lab, tmp_path, space, count=4, jobs=jobs, fresh=True)
        assert [row.directives.rpartition(" ")[2] for row in result.timed] == ["4", "3", "2", ""]
        assert result.counts["duplicate"] == 3


def test_of_many_versions_the_fastest_are_kept():
    """A row for each of the fastest thousand and for those that came first, a time for all; the best is among them."""
    tally = SweepStatistics(10**6, ("first",), Budget())
    tally.add(Row(CONTEXT, "first", status="timed", outcome=timed(1e9)))
    for n in range(5000):
        tally.add(Row(CONTEXT, f"{n}", status="timed", outcome=timed(float((n * 7919) % 5000 + 1))))
    result = tally.result("s", False)
    assert [row.median_us for row in result.timed] == [*map(float, range(1, KEPT + 1)), 1e9]
    assert len(result.times_us) == result.counts["timed"] == 5001
    assert result.best == tally.best


@pytest.mark.wide
def test_compiling_overlaps_measuring(lab: FakeLab, tmp_path: Path):
    """A version compiles while another is measured; with overlap off never."""
    slow = FakeLab(lab.journal, compile_s=0.05, measure_s=0.05)
    run(slow, tmp_path, parse("loop k: unroll {10..60}", "s"), jobs=2)
    order = [line.split()[0] for line in ran(lab, "")]
    assert order.index("measure") < len(order) - 1 - order[::-1].index("compile")
    lab.journal.unlink()
    result = run(slow, tmp_path, parse("loop k: unroll {2..9}", "s"), jobs=2, overlap=False, fresh=True)
    assert result.counts["timed"] == 9
    groups = re.sub(r"(.)\1*", r"\1", "".join(line[0] for line in ran(lab, "")))
    assert len(groups) <= 6
    assert set(groups) == {"c", "m"}


@pytest.mark.parametrize(("budget", "most"), [(Budget(), 10), (Budget(seconds=1000.0), 16)])
def test_rounds_of_compiling_and_measuring_are_few(lab: FakeLab, tmp_path: Path, budget: Budget, most: int) -> None:
    """At first short ones, for an early result; and short ones in a budget of time, where each may be the last."""
    result = run(lab, tmp_path, parse("loop k: unroll {2..61}", "s"), jobs=1, overlap=False, budget=budget)
    assert result.counts["timed"] == 61
    rounds = re.sub(r"(.)\1*", r"\1", "".join(line[0] for line in ran(lab, ""))).count("m")
    assert (4 if most == 10 else 11) <= rounds <= most


@pytest.mark.wide
@pytest.mark.parametrize("name", ["exhaustive", pytest.param("random", marks=pytest.mark.long)])
def test_the_coordinator_is_cheap_and_small(lab: FakeLab, tmp_path: Path, name: str):
    """A million points: under 2 ms of the coordinator's CPU time a configuration, and memory for those visited only."""
    space = parse("loop k: illegal {1..1000}\nloop j: unroll {1..1000}", "s")
    result = run(lab, tmp_path, count=1000, strategy=ALL[name](space, 1), first=())
    assert result.counts["illegal"] == 1000
    assert result.counts["space"] == 10**6
    assert result.spent.own / 1000 < 2e-3
    tracemalloc.start()
    run(lab, tmp_path, count=1000, strategy=ALL[name](space, 1), first=(), fresh=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12e6


@dataclass
class Taker:
    """A coordinator that takes the one device each time it may."""

    name: str
    left: int
    log: list[str]

    def advance(self) -> bool:
        if not self.ended() and (not self.log or self.log[-1] != "taken"):
            self.left -= 1
            self.log += [self.name, "taken"]
        return False

    def ended(self) -> bool:
        return self.left == 0

    def nap_s(self) -> None:
        return None

    def admit(self) -> None: ...


class Device:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def sleep(self, timeout_s: float | None) -> None: ...

    def replies(self) -> tuple[()]:
        self.log.append("free")
        return ()


def test_a_device_goes_to_the_kernel_with_most_left():
    log: list[str] = []
    parts = [Part(FakeLab(Path()), Exhaustive(parse("", "s")), MODEL)] * 2
    with defer_interrupts() as gate:
        _drive([Taker("few", 2, log), Taker("many", 5, log)], parts, Device(log), ({}, {}), gate)
    assert "".join(name[0] for name in log if name in ("few", "many")) == "mmmmffm"


@pytest.mark.wide
def test_the_coordinators_time_is_shared(lab: FakeLab, tmp_path: Path):
    """What it took for several at once is not counted several times."""
    start = time.thread_time()
    with Store.open(tmp_path / "store") as store:
        parts = [(replace(lab, context=replace(CONTEXT, kernel=k)), Exhaustive(parse("loop k: unroll {2..9}", "s")))
                 for k in "abcd"]  # fmt: skip
        found = swept(parts, store, partial(LocalWorkers, jobs=1, timeout_s=9.0), budget=Budget(), progress=print)
    took = time.thread_time() - start
    assert 0.0 < sum(result.spent.own for result in found) <= took


def test_the_default_alone(lab: FakeLab, tmp_path: Path):
    """An empty space is the default configuration, once."""
    result = run(lab, tmp_path, parse("", "s"))
    assert (result.counts["timed"], result.counts["duplicate"]) == (1, 1)
    assert result.timed[0].directives == DEFAULT.text


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("60", Budget(count=60)),
        (" 1 ", Budget(count=1)),
        ("90s", Budget(seconds=90)),
        ("10m", Budget(seconds=600)),
        ("1h", Budget(seconds=3600)),
        ("1.5 h", Budget(seconds=5400)),
        ("1h30m", Budget(seconds=5400)),
        ("2 Min", Budget(seconds=120)),
    ],
)
def test_budgets(text: str, budget: Budget):
    """Counts and times."""
    assert parse_budget(text) == budget


@pytest.mark.parametrize(
    "text", ["", "0", "-5", "ten", "5d", "1.5", "m", "0s", "10 m 5", "1e3", "nan", "inf", "1h-5m", "٣"]
)
def test_nonsense_is_no_budget(text: str):
    """Everything else is a UsageError that quotes it."""
    with pytest.raises(UsageError, match="invalid budget"):
        parse_budget(text)


def test_a_kernel_has_the_type_of_what_it_writes(tmp_path: Path) -> None:
    """Where its first parameter is an array of another type, which it reads."""
    (tmp_path / "f.c").write_text("void f(int n, char a[n], int b[n]) { for (int i = 0; i < n; i++) b[i] = a[i]; }\n")
    assert prepare(TuningRequest(tmp_path / "f.c", defines={"n": "8"}, target="numba-cpu")).context.dtype == "int32"
