"""Versions that are cut off, and the verdicts on those that are not."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from looptune.backends import early_stop
from looptune.backends.base import Progress
from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.runtime.outcome import CutOff, Timed, TimedOut, WrongResult, from_json, least_us, to_json
from looptune.runtime.roofline import MinimumWork, Peaks, Rate, Roofline
from looptune.runtime.timing import at_least, unpaired_speedup
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.tune.formats.files import read
from looptune.tune.incumbent import Incumbent
from looptune.tune.measure import measuring_device, pruning
from looptune.tune.measure.build_steps import BuildStep, Built, Plans, plans_of
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.measure.pruning import one_run_suffices
from looptune.tune.session import prepare
from looptune.tune.session.budget import Budget
from looptune.tune.session.statistics import SweepStatistics
from looptune.tune.space.space import Configuration, parse
from looptune.tune.store.store import Context, Row, Store
from looptune.tune.store.winners import winner
from tests.helpers.codelets import STEPS
from tests.helpers.fake_lab import FakeLab, ran, run


@pytest.fixture
def prepared(tmp_path: Path) -> prepare.PreparedRun:
    (tmp_path / "steps.c").write_text(STEPS)
    request = prepare.TuningRequest(tmp_path / "steps.c", defines={"t": "4000", "n": "20000"}, target="numba-cpu")
    found = prepare.prepare(request)
    return replace(found, job=replace(found.job, cache=tmp_path / "cache"))


def built(prepared: prepare.PreparedRun, text: str = "") -> Built:
    lab = KernelBuilder(prepared.job, prepared.context)
    made = plans_of(prepared.job, lab.scheduled(Configuration(tuple(text.splitlines()))).codelet, text)
    return Built(BuildStep(made), lab.backend.build(made.timed))


@pytest.mark.wide
def test_a_slow_version_is_cut_off(prepared: prepare.PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times slower than the best: stopped, with what was measured; the same against no best is timed whole."""
    monkeypatch.setattr(pruning, "WORTH_US", 1.0)
    bench, version = MeasuringDevice(prepared.job), built(prepared)
    match bench.measure(version, Incumbent(1.0)):
        case CutOff(elapsed_us, best_us, launched, launches_, verified, facts):
            assert elapsed_us > 3.0
            assert best_us == 1.0
            assert 0 <= launched < launches_ == 8000
            assert "only at" in verified
            assert dict(facts).keys() >= {"verify_s", "measure_s", "compile_s"}
        case other:
            raise AssertionError(f"not cut off: {other}")
    whole = bench.measure(version, None)
    assert isinstance(whole, Timed)
    pace = Incumbent.of(whole).pace
    assert pace is not None
    assert list(pace.us) == sorted(pace.us)
    assert pace.us[-1] <= whole.median_us + 0.1
    again = bench.measure(version, Incumbent(whole.median_us))
    assert isinstance(again, Timed | CutOff), "the best is not three times slower than itself, but for a hiccup"


def test_a_wrong_version_is_wrong_before_it_is_slow(
    prepared: prepare.PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails at the odd sizes is not merely cut off."""
    monkeypatch.setattr(pruning, "WORTH_US", 10.0)
    bench = MeasuringDevice(prepared.job)
    other = lower(schedule(Analysis(load(STEPS.replace("0.5f", "0.25f")).codelet)).codelet)
    assert isinstance(
        bench.measure(Built(BuildStep(Plans(other, None)), bench.backend.build(other)), Incumbent(5.0)), WrongResult
    )


@pytest.mark.wide
def test_a_time_that_cannot_be_is_wrong(prepared: prepare.PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the peak the device is measured once more; then the version is wrong, or the first peak was."""
    low, high = (Peaks(*[Rate(best, 0.0)] * 4) for best in (1e-6, 1e9))
    for now, kind in ((low, WrongResult), (high, Timed)):
        measured: list[object] = []
        monkeypatch.setattr(
            measuring_device.peak_rates, "measure", lambda *_, now=now, measured=measured: measured.append(0) or now
        )
        job = replace(prepared.job, ceiling=Roofline(MinimumWork(10**6, 0, "float32"), low, 0, cold=False))
        bench = MeasuringDevice(job)
        first, second = (bench.measure(built(prepared), None) for _ in "ab")
        assert type(first) is type(second) is kind, first
        assert len(measured) == 1
    match bench.job.ceiling, measuring_device.peak_rates.cached_rates(bench.machine.facts, job.cache):
        case Roofline(), Peaks(fma32=kept):
            assert kept == Rate(1e9, 0.0)


@pytest.mark.parametrize(
    ("first_us", "best_us", "once"),
    [(2e6, None, True), (2e5, None, False), (31_000, 10_000, True), (29_000, 10_000, False), (9000, 1000, False),
     (210, 10, True), (190, 10, False)],
)  # fmt: skip
def test_when_one_run_is_enough(first_us: float, best_us: float | None, once: bool) -> None:
    """Runs over a second, over three times the best where that is 10 ms or more, or over twenty times."""
    assert one_run_suffices(first_us, best_us) == once


@pytest.mark.wide
def test_a_version_behind_the_pace_is_cut_off(prepared: prepare.PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the best took by then is recorded, and how far that is; without cutting, the same version is timed."""
    monkeypatch.setattr(pruning, "MARK_US", 1.0)
    monkeypatch.setattr(early_stop, "WATCH_S", 1e-5)
    # Long enough for the thread that watches to have its turn on a busy machine.
    steps = 5000
    values = {**prepared.job.problem.values, "t": steps}
    job = replace(prepared.job, problem=replace(prepared.job.problem, values=values))
    version, bench = built(prepared), MeasuringDevice(job)
    loop = f"k in range(0, {steps}): S0 S1, after nothing"
    pace = Progress(loop, (0.5, 0.6, 0.7, 0.8, 0.9))
    best = Incumbent(1e9, pace=pace)
    match bench.measure(version, best):
        case CutOff(elapsed_us, 1e9, launched, launches_, best_at_cutoff_us=float(best_us), where=where) as outcome:
            assert elapsed_us > 3 * best_us
            assert best_us in pace.us
            assert where.endswith(f"of the host loop k in range(0, {steps})")
            assert outcome.cost_us > 3e9
            assert launched < launches_ == 2 * steps
        case other:
            raise AssertionError(f"not cut off: {other}")
    assert isinstance(bench.measure(version, replace(best, pace=replace(pace, loop="another"))), Timed)
    assert isinstance(MeasuringDevice(replace(job, cuts=False)).measure(version, best), Timed)


def test_what_one_thread_cannot_do_is_not_run() -> None:
    """A thread needs a nanosecond for an assignment: twenty times the best, and a second, are not waited for."""
    best = Incumbent(20_000.0)
    assert pruning.endless_outcome(999_000_000, best, 1) is None
    assert pruning.endless_outcome(5_000_000_000, Incumbent(500_000.0), 1) is None
    found = pruning.endless_outcome(5_000_000_000, best, 1)
    assert found is not None
    assert found.message == (
        "not run: the assignments of its kernels of one thread, at 1 ns each, are 5e+06 us, "
        "250 times the best (2e+04 us)"
    )
    assert from_json(to_json(found)) == found
    assert least_us(found) is None
    assert least_us(CutOff(6e6, 2e4, 1, 9, "")) == 6e6


def test_the_speedup_over_a_default_that_was_stopped_is_a_lower_bound() -> None:
    stopped = CutOff(6e6, 2e4, 0, 1, "", best_at_cutoff_us=2e3, where="at n=7")
    assert [least_us(x) for x in (TimedOut(60), stopped, WrongResult("a[0]"), None)] == [None] * 4
    assert str(at_least(6e7, 2e4)) == "at least 3,000x FAST"
    assert at_least(1e4, 2e4) is None


def test_cut_off_rows_of_before_are_read() -> None:
    """A row that does not say where is one that was stopped against the best's whole time."""
    old = '{"status": "cut_off", "ran_us": 31.0, "best_us": 10.0, "launched": 5, "launches": 40, "verified": ""}'
    match from_json(old):
        case CutOff(best_at_cutoff_us=None, where="") as found:
            assert found.cost_us == 31.0


CUT = CutOff(31.0, 10.0, 5, 40, "only at n=13", (("compile_s", 0.5),))
THERE = replace(CUT, best_at_cutoff_us=8.0, where="at n=257")


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
    tally = SweepStatistics(3, ("",), Budget())
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


@pytest.mark.wide
def test_after_a_guess_the_default_may_be_cut_off(tmp_path: Path) -> None:
    """The guess is measured before the default, even if the default is built first, and the default beside it."""
    lab = FakeLab(tmp_path / "journal")
    space = parse("loop k: unroll {2..4}", "s")
    run(lab, tmp_path, space, first=(Configuration(()),), guesses=(Configuration(("loop k: unroll 8",)),))
    measured = ran(lab, "measure")
    assert "unroll 8" in measured[0]
    assert measured[1].startswith("measure ''")
    assert [("best=None" in line) for line in measured] == [True, False, False, False, False]


@pytest.mark.wide
def test_a_guess_that_fails_holds_nothing_back(tmp_path: Path) -> None:
    """Where no version has a time, the default is measured whole."""
    lab = FakeLab(tmp_path / "journal")
    space = parse("loop k: illegal", "s")
    run(lab, tmp_path, space, first=(Configuration(()),), guesses=(Configuration(("loop k: wrong",)),))
    assert [("best=None" in line) for line in ran(lab, "measure")] == [True, True]


@pytest.mark.wide
def test_the_guess_that_is_fastest_at_reduced_sizes_runs_first_at_the_users(tmp_path: Path) -> None:
    lab = FakeLab(tmp_path / "journal")
    guesses = [Configuration((f"loop k: reduced {us} unroll {n}",)) for us, n in ((9, 4), (5, 8), (7, 16))]
    run(lab, tmp_path, parse("loop k: illegal", "s"), first=(Configuration(()),), guesses=guesses)
    measured = ran(lab, "measure")
    assert [("reduced" in line, "best=None" in line) for line in measured[:4]] == [(True, True)] * 3 + [(False, True)]
    assert "unroll 8" in measured[3]


@pytest.mark.wide
def test_late_in_a_budget_no_guess_waits_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that still compiles; where none is built even later, the default is measured."""
    slow, quick = Configuration(("loop k: hangcompiler",)), Configuration(("loop k: reduced 5 unroll 8",))
    for guesses, left, last in (((slow, quick), (10.0, 5.0), "unroll 8"), ((slow,), (3.0,), "''")):
        folder = tmp_path / last.strip("'")
        folder.mkdir(exist_ok=True)
        lab = FakeLab(folder / "journal")

        def left_s(tally: SweepStatistics, lab: FakeLab = lab, left: tuple[float, ...] = left) -> float:
            done = len(ran(lab, "measure"))
            return left[done] if done < len(left) else 0.0

        monkeypatch.setattr(SweepStatistics, "left_s", left_s)
        run(
            lab, folder, parse("loop k: illegal", "s"), first=(Configuration(()),), guesses=guesses,
            budget=Budget(None, 10.0), jobs=2, timeout_s=30.0,
        )  # fmt: skip
        assert last in ran(lab, "measure")[-1]


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
    found = unpaired_speedup(rounds(100.0, 1, noise), rounds(other_us, 2, noise)[:37], 3)
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert unpaired_speedup([10.0], [5.0], 0).verdict == "FAST"
