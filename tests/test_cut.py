"""Versions that are given up between two launches, and the verdicts on those that are not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_sweep import FakeLab, ran, run

from looptune import preparation, targets
from looptune.analysis import Analysis
from looptune.backends import stopping
from looptune.backends.base import Limit, Pace, Ran
from looptune.backends.marks import PARTS, Course, course
from looptune.backends.stopping import LOOKS, stopped
from looptune.frontend import load
from looptune.mapping import plan
from looptune.plans import blocks, extent, launches, repeats, sized
from looptune.runtime.outcome import CutOff, Timed, WrongResult, from_json, to_json
from looptune.runtime.roofline import Ceiling, Peaks, Rate, Work
from looptune.runtime.timing import speedup_apart
from looptune.schedule import schedule
from looptune.tune import cut, evaluate
from looptune.tune.best import Best
from looptune.tune.budget import Budget
from looptune.tune.cut import once_is_enough
from looptune.tune.evaluate import Bench, Built, KernelLab, Plans, Step, plans_of
from looptune.tune.recorded import read
from looptune.tune.space import Configuration, parse
from looptune.tune.store import Context, Row, Store
from looptune.tune.tally import Tally
from looptune.tune.winner import winner

STEPS = """
void steps(int t, int n, float x[n], float y[n]) {
  for (int k = 0; k < t; k++) {
    for (int i = 1; i < n; i++) y[i] = x[i - 1] + k;
    for (int i = 0; i < n - k; i++) x[i] = 0.5f * y[i];
  }
}
"""


@pytest.mark.parametrize("each_us", [1.0, 30.0, 1000.0, 5000.0])
def test_launches_stop_soon_after_the_limit(each_us: float) -> None:
    """It is looked at a few times only, yet no more than an eighth of the limit, or one launch, is made beyond it."""
    looks = 0

    def batch(most: int) -> tuple[int, float, float]:
        nonlocal looks
        looks += 1
        return most, most * each_us, most * each_us

    ran = stopped(batch, Limit(4000.0), 1_000_000)
    assert 4000.0 < ran.us <= 4000.0 + max(each_us, 4000.0 / LOOKS)
    assert ran.us == ran.launched * each_us
    assert looks <= LOOKS + 12


def test_launches_within_the_limit_are_all_made() -> None:
    """A plan that is fast enough runs to its end, whatever its number of launches; one without any has ended."""
    for launches_ in (0, 1, 2, 7, 100):
        left = launches_

        def batch(most: int) -> tuple[int, float, float]:
            nonlocal left
            made = min(most, left)
            left -= made
            return made, 0.0, 0.0

        assert stopped(batch, Limit(10.0), launches_) == Ran(0.0, launches_, launches_)


LOOP = "k in range(0, 1600): S0, after nothing"
MARKS = Course(LOOP, (25, 100, 200, 400, 800, 1600))


def constant(each_us: float, batches: list[int]) -> Callable[[int], tuple[int, float, float]]:
    """Every launch takes the same, of which a tenth may have been the host's."""

    def batch(most: int) -> tuple[int, float, float]:
        batches.append(most)
        return most, 0.9 * most * each_us, most * each_us

    return batch


def test_batches_end_at_the_marks() -> None:
    """Without a limit a whole run takes few batches, and what it took by each mark is known exactly."""
    batches: list[int] = []
    ran = stopped(constant(30.0, batches), Limit(math.inf), 1600, MARKS)
    assert ran == Ran(pytest.approx(0.9 * 48_000.0), 1600, 1600, Pace(LOOP, (750.0, 3e3, 6e3, 12e3, 24e3, 48e3)))
    assert set(np.cumsum(batches)) >= set(MARKS.after)
    assert len(batches) <= 14


@pytest.mark.parametrize(
    ("each_us", "loop", "launched"),
    [(30.0, LOOP, 1600), (32.0, LOOP, 1600), (60.0, LOOP, range(55, 71)), (500.0, LOOP, range(7, 9)),
     (60.0, "k in range(0, 1600): S0 S1, after nothing", 1600)],
)  # fmt: skip
def test_a_slow_host_loop_stops_at_its_first_mark(each_us: float, loop: str, launched: int | range) -> None:
    """Over 3 ms by the first of 1600 launches' marks it is stopped there or before; not by the pace of another loop."""
    allowed = Limit(1e6, Pace(loop, (3e3, 3e3, 6e3, 12e3, 24e3, 48e3)))
    ran = stopped(constant(each_us, []), allowed, 1600, MARKS)
    assert ran.launched in (launched if isinstance(launched, range) else [launched])
    assert (ran.us > 3e3) == (ran.launched < 1600) or ran.launched == 1600


def test_marks_are_where_the_same_work_is_done() -> None:
    """Fixed parts of the iterations, in launches; other bounds inside are the same loop, other statements are not."""
    sizes = {"t": 100, "n": 50}

    def course_of(text: str, **at: int) -> Course:
        found = course(plan(schedule(Analysis(load(text).codelet)).codelet), {**sizes, **at})
        assert found is not None
        return found

    steps = course_of(STEPS)
    assert steps == Course("k in range(0, 100): S0 S1, after nothing", (4, 14, 26, 50, 100, 200))
    assert course_of(STEPS, t=1).after == (2, 2, 2, 2, 2, 2)
    assert course_of(STEPS.replace("n - k", "n")).loop == steps.loop
    one = STEPS.replace("for (int i = 0; i < n - k; i++) x[i] = 0.5f * y[i];", "")
    before = STEPS.replace("for (int k", "for (int i = 0; i < n; i++) y[i] = 0; for (int k")
    others = [course_of(text).loop for text in (one, before, STEPS.replace("k = 0", "k = 1"), STEPS.replace("k", "l"))]
    assert len({steps.loop, *others}) == 5
    assert course_of(before).after == tuple(n + 1 for n in steps.after)
    assert course(plan(schedule(Analysis(load(STEPS).codelet)).codelet), {"t": 0, "n": 5}) is None


def test_marks_count_what_is_launched() -> None:
    """Where launches depend on the host loop's variable, or stand under conditions, marks are found all the same."""
    text = """
void f(int t, int n, float x[n], float y[n]) {
  if (t > 3) { for (int i = 0; i < n; i++) y[i] = 0; }
  for (int k = 0; k < t; k += 2) {
    for (int l = 0; l < k; l++) for (int i = 1; i < n; i++) y[i] = x[i - 1] + l;
    for (int i = 0; i < n; i++) x[i] = y[i] + k;
  }
}
"""
    made = plan(schedule(Analysis(load(text).codelet)).codelet)
    for t in (1, 2, 5, 33, 64):
        found = course(made, {"t": t, "n": 9})
        assert found is not None
        seen = [env.get("k", -1) for _, env in launches(made.steps, {"t": t, "n": 9})]
        trips = len(range(0, t, 2))
        reached = [2 * -(-trips // part) for part in PARTS]
        assert found.after == tuple(sum(k < end for k in seen) for end in reached)
        assert found.after[-1] == len(seen)


def test_grids_are_remembered_not_changed() -> None:
    """The grid of every launch is the one computed for it alone; None where nothing would run."""
    made = plan(schedule(Analysis(load(STEPS).codelet)).codelet)
    assert repeats(made)
    at = {kernel.name: sized(kernel) for kernel in made.kernels}
    seen = list(launches(made.steps, {"t": 9, "n": 6}))
    assert len(seen) == 18
    for kernel, env in seen:
        assert at[kernel.name](env) == (None if 0 in extent(kernel, env) else blocks(kernel, env))
    assert any(at[kernel.name](env) is None for kernel, env in seen)


def test_a_cpu_stops_between_two_launches(tmp_path: Path) -> None:
    """Without a limit to speak of all is run, and is what ``run`` does; with a small one only the first steps are."""
    backend = targets.backend("numba-cpu", tmp_path)
    program = backend.load(backend.build(plan(schedule(Analysis(load(STEPS).codelet)).codelet)))
    given = {name: np.arange(50, dtype=np.float32) for name in "xy"}
    whole, limited = ({name: a.copy() for name, a in given.items()} for _ in "ab")
    program.run(whole, {"t": 5, "n": 50})
    ran = program.run_within(Limit(60e6), limited, {"t": 5, "n": 50})
    assert (ran.launched, ran.launches) == (10, 10)
    np.testing.assert_array_equal(limited["x"], whole["x"])
    long = {name: np.ones(200_000, np.float32) for name in "xy"}
    ran = program.run_within(Limit(2e4), long, {"t": 100_000, "n": 200_000})
    assert 0 < ran.launched < ran.launches == 200_000
    assert ran.us >= 2e4


def test_a_cpu_keeps_its_pace(tmp_path: Path) -> None:
    """Every mark of a whole run has a time, in order; a version behind another's pace stops long before the limit."""
    backend = targets.backend("numba-cpu", tmp_path)
    program = backend.load(backend.build(plan(schedule(Analysis(load(STEPS).codelet)).codelet)))
    arrays, sizes = {name: np.ones(20_000, np.float32) for name in "xy"}, {"t": 4000, "n": 20_000}
    ran = program.run_within(Limit(math.inf), arrays, sizes)
    assert ran.launched == ran.launches == 8000
    assert ran.pace is not None
    assert len(ran.pace.us) == len(PARTS)
    assert 0 < ran.pace.us[0] < ran.pace.us[-1] <= ran.us
    assert list(ran.pace.us) == sorted(ran.pace.us)
    behind = Pace(ran.pace.loop, (1.0,) * len(PARTS))
    cut_off = program.run_within(Limit(60e6, behind), arrays, sizes)
    assert cut_off.launched < 8000
    assert cut_off.us > 1.0


@pytest.fixture
def prepared(tmp_path: Path) -> preparation.Prepared:
    (tmp_path / "steps.c").write_text(STEPS)
    request = preparation.Request(tmp_path / "steps.c", defines={"t": "4000", "n": "20000"}, target="numba-cpu")
    found = preparation.prepare(request)
    return replace(found, job=replace(found.job, cache=tmp_path / "cache"))


def built(prepared: preparation.Prepared, text: str = "") -> Built:
    lab = KernelLab(prepared.job, prepared.context)
    made = plans_of(prepared.job, lab.scheduled(Configuration(tuple(text.splitlines()))).codelet, text)
    return Built(Step(made), lab.backend.build(made.timed))


def test_a_slow_version_is_cut_off(prepared: preparation.Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times slower than the best: stopped, with what was measured; the same against no best is timed whole."""
    monkeypatch.setattr(cut, "WORTH_US", 1.0)
    bench, version = Bench(prepared.job), built(prepared)
    match bench.measure(version, Best(1.0)):
        case CutOff(ran_us, best_us, launched, launches_, verified, facts):
            assert ran_us > 3.0
            assert best_us == 1.0
            assert 0 <= launched < launches_ == 8000
            assert "only at" in verified
            assert dict(facts).keys() >= {"verify_s", "measure_s", "compile_s"}
        case other:
            raise AssertionError(f"not cut off: {other}")
    whole = bench.measure(version, None)
    assert isinstance(whole, Timed)
    pace = Best.of(whole).pace
    assert pace is not None
    assert list(pace.us) == sorted(pace.us)
    assert pace.us[-1] <= whole.median_us + 0.1
    again = bench.measure(version, Best(whole.median_us))
    assert isinstance(again, Timed | CutOff), "the best is not three times slower than itself, but for a hiccup"


def test_a_wrong_version_is_wrong_before_it_is_slow(
    prepared: preparation.Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails at the odd sizes is not merely cut off."""
    monkeypatch.setattr(cut, "WORTH_US", 10.0)
    bench = Bench(prepared.job)
    other = plan(schedule(Analysis(load(STEPS.replace("0.5f", "0.25f")).codelet)).codelet)
    assert isinstance(
        bench.measure(Built(Step(Plans(other, None)), bench.backend.build(other)), Best(5.0)), WrongResult
    )


def test_a_time_that_cannot_be_is_wrong(prepared: preparation.Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the peak the device is measured once more; then the version is wrong, or the first peak was."""
    low, high = (Peaks(*[Rate(best, 0.0)] * 4) for best in (1e-6, 1e9))
    for now, kind in ((low, WrongResult), (high, Timed)):
        measured: list[object] = []
        monkeypatch.setattr(evaluate.peak, "measure", lambda *_, now=now, measured=measured: measured.append(0) or now)
        job = replace(prepared.job, ceiling=Ceiling(Work(10**6, 0, "float32"), low, 0, cold=False))
        bench = Bench(job)
        first, second = (bench.measure(built(prepared), None) for _ in "ab")
        assert type(first) is type(second) is kind, first
        assert len(measured) == 1
    match bench.job.ceiling, evaluate.peak.known(bench.machine.facts, job.cache):
        case Ceiling(), Peaks(fma32=kept):
            assert kept == Rate(1e9, 0.0)


@pytest.mark.parametrize(
    ("first_us", "best_us", "once"),
    [(2e6, None, True), (2e5, None, False), (31_000, 10_000, True), (29_000, 10_000, False), (9000, 1000, False),
     (210, 10, True), (190, 10, False)],
)  # fmt: skip
def test_when_one_run_is_enough(first_us: float, best_us: float | None, once: bool) -> None:
    """Runs over a second, over three times the best where that is 10 ms or more, or over twenty times."""
    assert once_is_enough(first_us, best_us) == once


def test_a_version_behind_the_pace_is_cut_off(prepared: preparation.Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the best took by then is recorded, and how far that is; without cutting, the same version is timed."""
    monkeypatch.setattr(cut, "MARK_US", 1.0)
    monkeypatch.setattr(stopping, "WATCH_S", 1e-5)
    # Long enough for the thread that watches to have its turn on a busy machine.
    steps = 5000
    values = {**prepared.job.problem.values, "t": steps}
    job = replace(prepared.job, problem=replace(prepared.job.problem, values=values))
    version, bench = built(prepared), Bench(job)
    loop = f"k in range(0, {steps}): S0 S1, after nothing"
    pace = Pace(loop, (0.5, 0.6, 0.7, 0.8, 0.9))
    best = Best(1e9, pace=pace)
    match bench.measure(version, best):
        case CutOff(ran_us, 1e9, launched, launches_, there_us=float(there_us), where=where) as outcome:
            assert ran_us > 3 * there_us
            assert there_us in pace.us
            assert where.endswith(f"of the host loop k in range(0, {steps})")
            assert outcome.cost_us > 3e9
            assert launched < launches_ == 2 * steps
        case other:
            raise AssertionError(f"not cut off: {other}")
    assert isinstance(bench.measure(version, replace(best, pace=replace(pace, loop="another"))), Timed)
    assert isinstance(Bench(replace(job, cuts=False)).measure(version, best), Timed)


@pytest.mark.parametrize(
    ("us", "passed", "there_us", "where"),
    [(301e3, 3, None, ""), (7e3, 0, 2e3, "before 1/64"), (16e3, 1, 5e3, "before 1/16"), (16e3, 2, 5e3, "at 1/16"),
     (31e3, 2, 10e3, "before 1/8"),
     (200e3, 6, 60e3, "at the end")],
)  # fmt: skip
def test_where_a_version_was_cut_off(us: float, passed: int, there_us: float | None, where: str) -> None:
    """At the mark it has passed or the one it did not reach in time; nowhere, where it took too long for all of it."""
    best = Best(100e3, pace=Pace(LOOP, (2e3, 5e3, 10e3, 20e3, 40e3, 60e3)))
    found = cut.stopped(Ran(us, 7, 1600, Pace(LOOP, (us,) * passed)), best, "n=13", ())
    assert (found.there_us, found.where.startswith(where)) == (there_us, True)
    assert found.cost_us >= 3 * best.us
    assert found.verified == "only at n=13"
    assert from_json(to_json(found)) == found


def test_cut_off_rows_of_before_are_read() -> None:
    """A row that does not say where is one that was stopped against the best's whole time."""
    old = '{"status": "cut_off", "ran_us": 31.0, "best_us": 10.0, "launched": 5, "launches": 40, "verified": ""}'
    match from_json(old):
        case CutOff(there_us=None, where="") as found:
            assert found.cost_us == 31.0


CUT = CutOff(31.0, 10.0, 5, 40, "only at n=13", (("compile_s", 0.5),))
THERE = replace(CUT, there_us=8.0, where="at n=257")


@pytest.mark.parametrize(("cut_off", "cost_us"), [(CUT, 31.0), (THERE, 38.75)])
def test_a_cut_off_version_counts_and_never_wins(tmp_path: Path, cut_off: CutOff, cost_us: float) -> None:
    """It is evaluated, stored and told as a cost, but neither timed nor failed; a search replayed knows it too."""
    assert from_json(to_json(cut_off)) == cut_off
    assert THERE.message == (
        "cut off at n=257: 31 us, 3.88 times what the best took there (8 us, 10 us in all): 5 of 40 launches made"
    )
    assert CUT.message == "cut off after 31 us, 3.1 times the best (10 us): 5 of 40 launches made"
    context = Context("f", "c0ffee", "1", "none", "0", "nowhere", "numba-cpu", "{}", "float32")
    rows = {
        "loop i: unroll 2": Timed((10.0,), 10.0, 10.0, 10.0, ""),
        "loop i: unroll 3": cut_off,
        "": Timed((20.0,), 20.0, 20.0, 20.0, ""),
    }
    tally = Tally(3, ("",), Budget())
    with Store.open(tmp_path / "db") as store:
        for text, outcome in rows.items():
            store.record(Row(context, text), outcome)
        for row in store.rows():
            tally.add(row)
            assert row.cost_us == (cost_us if row.outcome == cut_off else row.median_us)
        assert [row.directives for row in store.rows(status="cut_off")] == ["loop i: unroll 3"]
    result = tally.result("s", False)
    assert (result.counts["timed"], result.counts["cut_off"], tally.done) == (2, 1, 3)
    assert result.times_us == (10.0, 20.0)
    (recording,) = read(tmp_path / "db")
    assert recording.best_us == 10.0
    assert sorted(m.cost_us for m in recording.measured if m.cost_us is not None) == [10.0, 20.0, cost_us]


def test_the_default_is_never_cut_off(tmp_path: Path) -> None:
    """What stands first, and all is compared with, is measured without regard to what has been found."""
    lab = FakeLab(tmp_path / "journal")
    space = parse("loop k: unroll {2..4}", "s")
    run(lab, tmp_path, space, first=(Configuration(("loop k: unroll 8",)), Configuration(())))
    measured = ran(lab, "measure")
    assert [("best=None" in line) for line in measured] == [True, True, False, False, False]


def rounds(base_us: float, seed: int, noise: float) -> tuple[float, ...]:
    rng = random.Random(seed)
    return tuple(base_us * (1 + noise * rng.random()) for _ in range(60))


def test_the_plainest_of_those_that_are_the_same_wins() -> None:
    """Ties are SAME as the fastest and no more: neither what is clearly slower nor what the noise does not decide."""
    times = {
        "loop i: unroll 4\nloop j: unroll 2": rounds(100.0, 1, 0.002),
        "loop i: unroll 4": rounds(100.2, 2, 0.002),
        "loop i: unroll 8": rounds(100.3, 3, 0.002),
        "": rounds(104.0, 4, 0.002),
        "loop k: tile 2": rounds(96.0, 5, 0.12),
    }
    clear = {text: us for text, us in times.items() if text != "loop k: tile 2"}
    assert winner(clear, list(clear)) == (
        "loop i: unroll 4", ("loop i: unroll 4\nloop j: unroll 2", "loop i: unroll 8"),
    )  # fmt: skip
    assert winner(clear | {"": (1.0,) * 5}, list(clear)) == winner(clear, list(clear)), "it left early"
    best, ties = winner(times, list(times))
    assert "" not in (best, *ties)
    assert "loop k: tile 2" not in (best, *ties) or summary_of(times, best) <= summary_of(times, "loop k: tile 2")


def summary_of(times: dict[str, tuple[float, ...]], text: str) -> float:
    return float(np.median(times[text]))


@pytest.mark.parametrize(
    ("other_us", "noise", "verdict"),
    [(50.0, 0.02, "FAST"), (150.0, 0.02, "SLOW"), (100.0, 0.004, "SAME"), (99.0, 0.2, "AMBIGUOUS")],
)
def test_runs_apart_have_a_verdict_too(other_us: float, noise: float, verdict: str) -> None:
    """Different numbers of runs, drawn independently; a single run has no spread of its own."""
    found = speedup_apart(rounds(100.0, 1, noise), rounds(other_us, 2, noise)[:37], 3)
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert speedup_apart([10.0], [5.0], 0).verdict == "FAST"
