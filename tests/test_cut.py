"""Versions that are given up between two launches, and the verdicts on those that are not."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_sweep import FakeLab, ran, run

from looptune import experiment, finals, targets
from looptune.backends.base import Ran
from looptune.backends.stopping import LOOKS, stopped
from looptune.frontend import load
from looptune.mapping import blocks, extent, launches, plan, repeats, sized
from looptune.runtime.outcome import CutOff, Timed, WrongResult, from_json, to_json
from looptune.runtime.roofline import Ceiling, Peaks, Rate, Work
from looptune.runtime.timing import speedup_apart
from looptune.schedule import Analysis, schedule
from looptune.tune import evaluate
from looptune.tune.budget import Budget
from looptune.tune.evaluate import Bench, Built, KernelLab, once_is_enough, plans_of
from looptune.tune.recorded import read
from looptune.tune.space import Configuration, parse
from looptune.tune.store import Context, Row, Store
from looptune.tune.tally import Tally

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

    def batch(most: int) -> tuple[int, float]:
        nonlocal looks
        looks += 1
        return most, most * each_us

    ran = stopped(batch, 4000.0, 1_000_000)
    assert 4000.0 < ran.us <= 4000.0 + max(each_us, 4000.0 / LOOKS)
    assert ran.us == ran.launched * each_us
    assert looks <= LOOKS + 12


def test_launches_within_the_limit_are_all_made() -> None:
    """A plan that is fast enough runs to its end, whatever its number of launches; one without any has ended."""
    for launches_ in (0, 1, 2, 7, 100):
        left = launches_

        def batch(most: int) -> tuple[int, float]:
            nonlocal left
            made = min(most, left)
            left -= made
            return made, 0.0

        assert stopped(batch, 10.0, launches_) == Ran(0.0, launches_, launches_)


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
    ran = program.run_within(60e6, limited, {"t": 5, "n": 50})
    assert (ran.launched, ran.launches) == (10, 10)
    np.testing.assert_array_equal(limited["x"], whole["x"])
    long = {name: np.ones(200_000, np.float32) for name in "xy"}
    ran = program.run_within(2e4, long, {"t": 100_000, "n": 200_000})
    assert 0 < ran.launched < ran.launches == 200_000
    assert ran.us >= 2e4


@pytest.fixture
def prepared(tmp_path: Path) -> experiment.Prepared:
    (tmp_path / "steps.c").write_text(STEPS)
    request = experiment.Request(tmp_path / "steps.c", defines={"t": "400", "n": "4000"}, target="numba-cpu")
    found = experiment.prepare(request)
    return replace(found, job=replace(found.job, cache=tmp_path / "cache"))


def built(prepared: experiment.Prepared, text: str = "") -> Built:
    lab = KernelLab(prepared.job, prepared.context)
    made = plans_of(prepared.job, lab.scheduled(Configuration(tuple(text.splitlines()))).codelet, text)
    return Built(lab.backend.build(made.timed), None)


def test_a_slow_version_is_cut_off(prepared: experiment.Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times slower than the best: stopped, with what was measured; the same against no best is timed whole."""
    monkeypatch.setattr(evaluate, "WORTH_US", 1.0)
    bench, version = Bench(prepared.job), built(prepared)
    match bench.measure(version, 1.0):
        case CutOff(ran_us, best_us, launched, launches_, verified, facts):
            assert ran_us > 3.0
            assert best_us == 1.0
            assert 0 <= launched < launches_ == 800
            assert "only at" in verified
            assert dict(facts).keys() >= {"verify_s", "measure_s", "compile_s"}
        case other:
            raise AssertionError(f"not cut off: {other}")
    whole = bench.measure(version, None)
    assert isinstance(whole, Timed)
    again = bench.measure(version, whole.median_us)
    assert isinstance(again, Timed | CutOff), "the best is not three times slower than itself, but for a hiccup"


def test_a_wrong_version_is_wrong_before_it_is_slow(
    prepared: experiment.Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails at the odd sizes is not merely cut off."""
    monkeypatch.setattr(evaluate, "WORTH_US", 10.0)
    bench = Bench(prepared.job)
    other = plan(schedule(Analysis(load(STEPS.replace("0.5f", "0.25f")).codelet)).codelet)
    assert isinstance(bench.measure(Built(bench.backend.build(other), None), 5.0), WrongResult)


def test_a_time_that_cannot_be_is_wrong(prepared: experiment.Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
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
    [(2e6, None, True), (9e5, None, False), (31_000, 10_000, True), (29_000, 10_000, False), (9000, 1000, False),
     (210, 10, True), (190, 10, False)],
)  # fmt: skip
def test_when_one_run_is_enough(first_us: float, best_us: float | None, once: bool) -> None:
    """Runs over a second, over three times the best where that is 10 ms or more, or over twenty times."""
    assert once_is_enough(first_us, best_us) == once


CUT = CutOff(31.0, 10.0, 5, 40, "only at n=13", (("compile_s", 0.5),))


def test_a_cut_off_version_counts_and_never_wins(tmp_path: Path) -> None:
    """It is evaluated, stored and told as a cost, but neither timed nor failed; a search replayed knows it too."""
    assert from_json(to_json(CUT)) == CUT
    assert CUT.message == "cut off after 31 us, 3.1 times the best (10 us): 5 of 40 launches made"
    context = Context("f", "c0ffee", "1", "none", "0", "nowhere", "numba-cpu", "{}", "float32")
    rows = {
        "loop i: unroll 2": Timed((10.0,), 10.0, 10.0, 10.0, ""),
        "loop i: unroll 3": CUT,
        "": Timed((20.0,), 20.0, 20.0, 20.0, ""),
    }
    tally = Tally(3, ("",), Budget())
    with Store.open(tmp_path / "db") as store:
        for text, outcome in rows.items():
            store.record(Row(context, text), outcome)
        for row in store.rows():
            tally.add(row)
            assert row.cost_us == (31.0 if row.outcome == CUT else row.median_us)
        assert [row.directives for row in store.rows(status="cut_off")] == ["loop i: unroll 3"]
    result = tally.result("s", False)
    assert (result.counts["timed"], result.counts["cut_off"], tally.done) == (2, 1, 3)
    assert result.times_us == (10.0, 20.0)
    (recording,) = read(tmp_path / "db")
    assert recording.best_us == 10.0
    assert sorted(m.cost_us for m in recording.measured if m.cost_us is not None) == [10.0, 20.0, 31.0]


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
    assert finals.winner(clear, list(clear)) == (
        "loop i: unroll 4", ("loop i: unroll 4\nloop j: unroll 2", "loop i: unroll 8"),
    )  # fmt: skip
    best, ties = finals.winner(times, list(times))
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
