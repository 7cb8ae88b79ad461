"""In a budget of seconds, the versions with the least predicted times come first, and hopeless ones do not run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.runtime.outcome import PREDICTED, CutOff, from_json, least_us, to_json
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.cost_model import devices
from looptune.tune.execution.executor import TaskReply
from looptune.tune.execution.lab import FIRST, LAST, NextStep, Order, PreparedVersion, SweepResult
from looptune.tune.execution.worker_loop import TaskResult
from looptune.tune.incumbent import Incumbent
from looptune.tune.measure.pruning import predicted_outcome
from looptune.tune.session.budget import Budget
from looptune.tune.session.predicted_time import predicted_us
from looptune.tune.session.sweep import Part, sweeps
from looptune.tune.space.space import Configuration, parse
from looptune.tune.store.store import Store
from looptune.tune.strategies.exhaustive import Exhaustive
from looptune.tune.strategies.sections import Sections
from tests.helpers import local_sweep
from tests.helpers.fake_lab import FakeLab, ran, run
from tests.helpers.fake_tasks import timed
from tests.helpers.fake_workers import FakeWorkers

SPACE = parse("loop k: { predicted 900000, unroll 2 | predicted 20, unroll 4 | predicted 90000000, unroll 8 }", "s")


def test_a_version_with_a_hopeless_prediction_does_not_run() -> None:
    """The best's own prediction says by how much predictions are too long; none is taken to be too short."""
    best = Incumbent(20_000.0)
    assert predicted_outcome(190_000.0, best, 20_000.0) is None
    assert predicted_outcome(390_000.0, best, 40_000.0) is None
    assert predicted_outcome(90_000.0, Incumbent(10.0), 10.0) is None, "it keeps no other one waiting"
    found = predicted_outcome(5e6, best, 10_000.0)
    assert found is not None
    assert found.message == "not run: it is predicted to take 5e+06 us, 250 times the best (2e+04 us)"
    assert from_json(to_json(found)) == found
    assert least_us(found) is None


@pytest.mark.wide
def test_versions_run_in_the_order_of_their_predictions(tmp_path: Path) -> None:
    """The first one that has a time is the one predicted to be fast, although the default was built before it."""
    lab = FakeLab(tmp_path / "journal", compile_s=0.05)
    first = (Configuration(("loop k: predicted 3000000, unroll 16",)),)
    run(lab, tmp_path, SPACE, first=first, guesses=(Configuration(("loop k: predicted 2500000, unroll 32",)),))
    measured = [line.partition(" pid")[0] for line in ran(lab, "measure")]
    assert measured == ["measure 'loop k: predicted 20, unroll 4'"]
    with Store.open(tmp_path / "store") as store:
        stopped = [row.outcome for row in store.rows() if row.status == "cut_off"]
    assert [o.where for o in stopped if isinstance(o, CutOff)] == [PREDICTED] * 4


def test_idle_processes_compile_kernels_ahead(tmp_path: Path) -> None:
    """As many as have nothing to do fill the cache for a build; what they say is no version's reply."""
    asked: list[tuple[str, Any]] = []

    def compiled(lab: int, step: str, given: Any) -> TaskResult:
        asked.append((step, given))
        prepared = PreparedVersion("source", "task", 20.0, ("first", "second", "third"))
        return TaskResult(prepared if step == "prepare" else None if step == "ahead" else "built")

    def open_workers(labs: Any) -> FakeWorkers:
        return FakeWorkers(compiled, lambda lab, built, best: TaskResult(timed(10.0)), compilers=2)

    with Store.open(tmp_path / "store") as store:
        space = Exhaustive(parse("loop k: unroll 4", "s"))
        given = {"budget": Budget(), "progress": lambda p: None, "first": ()}
        (result,) = local_sweep.swept([(FakeLab(tmp_path), space)], store, open_workers, **given)
    assert [what for what in asked if what[0] != "prepare"] == [
        ("build", "task"),
        ("ahead", "first"),
        ("ahead", "second"),
    ]
    assert result.counts["timed"] == 1


def test_finals_begin_while_other_kernels_are_searched(tmp_path: Path) -> None:
    """Those of a kernel that is done, by processes that have nothing else to do; of the last one, finals are next."""
    asked: list[tuple[int, str, Any, Order]] = []

    class Noted(FakeWorkers):
        def compile(
            self, lab: int, key: Any, step: str, given: Any, urgent: bool = False, order: Order = FIRST
        ) -> None:
            asked.append((lab, step, given, order))
            super().compile(lab, key, step, given, urgent, order)

    def compiled(lab: int, step: str, given: Any) -> TaskResult:
        return TaskResult(PreparedVersion(str(given), "first") if step == "prepare" else given)

    def measured(lab: int, built: Any, best: Any) -> TaskResult:
        return TaskResult(NextStep("second") if (lab, built) == (1, "first") else timed(10.0))

    def finals(result: SweepResult) -> list[str]:
        return [row.directives for row in result.timed]

    def open_workers(labs: Any) -> Noted:
        return Noted(compiled, measured)

    spaces = [Exhaustive(parse(text, "s")) for text in ("loop k: unroll 4", "loop k: unroll {2..9}")]
    executor: Any = local_sweep.Opening(open_workers, True)
    parts = [Part(FakeLab(tmp_path / "j"), one, local_sweep.MODEL, finals=finals) for one in spaces]
    given: dict[str, Any] = {"budget": Budget(), "progress": lambda p: None, "first": ()}
    with Store.open(tmp_path / "store") as store:
        done, last = sweeps(parts, store, executor, jobs=1, timeout_s=1.0, **given)
    assert done.finals == {"loop k: unroll 4": TaskResult("loop k: unroll 4")}
    assert last.finals == {}
    assert [task for task in asked if task[1] == "finals"] == [(0, "finals", "loop k: unroll 4", LAST)]


def test_long_sources_are_built_after_short_ones_until_something_has_a_time(tmp_path: Path) -> None:
    """Else all processes may be compiling one when a short budget ends; later, predicted times decide alone."""
    built: list[tuple[str, Order]] = []

    class Ordered(FakeWorkers):
        def compile(
            self, lab: int, key: Any, step: str, given: Any, urgent: bool = False, order: Order = FIRST
        ) -> None:
            if step == "build":
                built.append((given, order))
            super().compile(lab, key, step, given, urgent, order)

    def compiled(lab: int, step: str, given: Any) -> TaskResult:
        if step != "prepare":
            return TaskResult("built")
        long = "unroll 2" in given.text
        return TaskResult(
            PreparedVersion(given.text, given.text, 20.0 if long else 30.0, compile_s=50.0 if long else 0.5)
        )

    def open_workers(labs: Any) -> FakeWorkers:
        return Ordered(compiled, lambda lab, built, best: TaskResult(timed(10.0)), compilers=2)

    with Store.open(tmp_path / "store") as store:
        space = Exhaustive(parse("loop k: unroll {2, 4, 8}", "s"))
        given = {"budget": Budget(), "progress": lambda p: None, "first": ()}
        local_sweep.swept([(FakeLab(tmp_path), space)], store, open_workers, **given)
    (first, long), (second, short) = built[:2]
    assert (first, second) == ("loop k: unroll 2", "loop k: unroll 4")
    assert short == (False, 30.0) < long == (True, 20.0)


def test_processes_share_the_kernels_of_the_best_long_version(tmp_path: Path) -> None:
    """In a budget of time, a long version with the least predicted time is built by several processes, also by busy
    ones; what comes for it has the place of its build."""
    asked: list[tuple[str, Any, Order]] = []
    predicted = {"2": 30.0, "4": 20.0, "8": 40.0}

    class Ordered(FakeWorkers):
        def compile(
            self, lab: int, key: Any, step: str, given: Any, urgent: bool = False, order: Order = FIRST
        ) -> None:
            if step != "prepare":
                asked.append((step, given, order))
            super().compile(lab, key, step, given, urgent, order)

    def compiled(lab: int, step: str, given: Any) -> TaskResult:
        if step != "prepare":
            return TaskResult("built")
        factor = given.text.split()[-1]
        return TaskResult(PreparedVersion(factor, factor, predicted[factor], (f"part of {factor}",), compile_s=50.0))

    def open_workers(labs: Any) -> FakeWorkers:
        return Ordered(compiled, lambda lab, built, best: TaskResult(timed(10.0)), compiling=1)

    with Store.open(tmp_path / "store") as store:
        space = Exhaustive(parse("loop k: unroll {2, 4, 8}", "s"))
        given = {"budget": Budget(seconds=60.0), "progress": lambda p: None, "first": ()}
        local_sweep.swept([(FakeLab(tmp_path), space)], store, open_workers, **given)
    assert {(what, order[1]) for step, what, order in asked if step == "ahead"} == {
        ("part of 2", 30.0),
        ("part of 4", 20.0),
    }


@pytest.mark.parametrize(("budget", "all_at_once"), [(Budget(seconds=60.0), True), (Budget(), False)])
def test_a_search_by_sections_waits_for_no_slow_version_in_a_budget_of_time(
    tmp_path: Path, budget: Budget, all_at_once: bool
) -> None:
    """Without one, what it asks for depends on the costs only: those before it must be known."""
    space = parse("loop k: unroll {2..50}", "s")
    measured_meanwhile: list[int] = []

    class Slow(FakeWorkers):
        """The first version has its time when nothing else is under way."""

        held: list[TaskReply] = []  # noqa: RUF012 - one set of workers
        others = 0

        def replies(self) -> list[TaskReply]:
            answers = super().replies()
            first = [a for a in answers if a.measured and a.key.configuration.text == "loop k: unroll 2"]
            self.held += first
            answers = [a for a in answers if a not in first]
            self.others += sum(a.measured for a in answers)
            if answers or not self.held:
                return answers
            measured_meanwhile.append(self.others)
            answers, self.held = self.held, []
            return answers

    def compiled(lab: int, step: str, given: Any) -> TaskResult:
        return TaskResult(PreparedVersion(given.text, given.text) if step == "prepare" else "built")

    def open_workers(labs: Any) -> FakeWorkers:
        return Slow(compiled, lambda lab, built, best: TaskResult(timed(10.0)), compilers=100)

    with Store.open(tmp_path / "store") as store:
        given = {"budget": budget, "progress": lambda p: None, "first": ()}
        (result,) = local_sweep.swept([(FakeLab(tmp_path), Sections(space))], store, open_workers, **given)
    assert result.counts["timed"] == space.size
    assert measured_meanwhile == [space.size - 1 if all_at_once else Sections.window - 1]


@pytest.mark.wide
def test_hopeless_builds_are_withdrawn(tmp_path: Path) -> None:
    """They wait while the one process compiles better ones, and are settled as soon as one of these has a time."""
    lab = FakeLab(tmp_path / "journal", compile_s=0.3)
    guesses = [Configuration((f"loop k: predicted {us}, unroll 4",)) for us in (2000000, 3000000, 20, 4000000)]
    result = run(lab, tmp_path, parse("loop k: illegal", "s"), first=(), guesses=guesses)
    assert (result.counts["timed"], result.counts["cut_off"]) == (1, 3)
    assert len(ran(lab, "compile")) < 4


def test_the_cost_model_tells_a_launch_a_row_from_one_launch() -> None:
    """A loop of the host with many launches is predicted to take at least the time between launches."""
    text = "void f(int n, float A[n][n]) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) A[i][j] += 1; }\n"
    analysis = Analysis(load(text).codelet)
    predict = partial(predicted_us, {"n": 4096}, devices.DEFAULT)

    def predicted(*lines: str) -> float:
        codelet = schedule(analysis, parse_lines(lines), {"n": 4096}).codelet
        return predict(lower(specialize(codelet, {"n": 4096}), blocks=True))

    assert predicted("loop i: noParallel") > 4096 * 0.5 > 10 * predicted()
