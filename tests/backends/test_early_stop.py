"""Launches that stop soon after a limit, and the marks at which they are compared with the best's pace."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from looptune.backends.base import PartialRun, Progress, TimeLimit
from looptune.backends.early_stop import LOOKS, run_in_batches
from looptune.frontend import load
from looptune.lower.checkpoints import PARTS, Checkpoints, checkpoints
from looptune.lower.pipeline import lower
from looptune.lower.plan import blocks, extent, grid_function, has_host_loop, launches
from looptune.runtime import targets
from looptune.runtime.outcome import from_json, to_json
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.tune.incumbent import Incumbent
from looptune.tune.measure import pruning
from tests.helpers.codelets import STEPS


@pytest.mark.parametrize("each_us", [1.0, 30.0, 1000.0, 5000.0])
def test_launches_stop_soon_after_the_limit(each_us: float) -> None:
    """It is looked at a few times only, yet no more than an eighth of the limit, or one launch, is made beyond it."""
    looks = 0

    def batch(most: int) -> tuple[int, float, float]:
        nonlocal looks
        looks += 1
        return most, most * each_us, most * each_us

    ran = run_in_batches(batch, TimeLimit(4000.0), 1_000_000)
    assert 4000.0 < ran.us <= 4000.0 + max(each_us, 4000.0 / LOOKS)
    assert ran.us == ran.launched * each_us
    assert looks <= LOOKS + 12


@pytest.mark.parametrize(("power", "limit_us"), [(3, 1e5), (4, 1e6)])
def test_launches_that_grow_stop_soon_after_the_limit(power: int, limit_us: float) -> None:
    """Where each launch takes longer than the one before, the average of all so far says too little."""
    made: list[int] = []

    def batch(most: int) -> tuple[int, float, float]:
        first = sum(made)
        made.append(most)
        us = float(sum(i**power for i in range(first, first + most)))
        return most, us, us

    ran = run_in_batches(batch, TimeLimit(limit_us), 100_000)
    assert limit_us < ran.us < 1.3 * limit_us


def test_launches_within_the_limit_are_all_made() -> None:
    """A plan that is fast enough runs to its end, whatever its number of launches; one without any has ended."""
    for launches_ in (0, 1, 2, 7, 100):
        left = launches_

        def batch(most: int) -> tuple[int, float, float]:
            nonlocal left
            made = min(most, left)
            left -= made
            return made, 0.0, 0.0

        assert run_in_batches(batch, TimeLimit(10.0), launches_) == PartialRun(0.0, launches_, launches_)


LOOP = "k in range(0, 1600): S0, after nothing"
MARKS = Checkpoints(LOOP, (25, 100, 200, 400, 800, 1600))


def constant(each_us: float, batches: list[int]) -> Callable[[int], tuple[int, float, float]]:
    """Every launch takes the same, of which a tenth may have been the host's."""

    def batch(most: int) -> tuple[int, float, float]:
        batches.append(most)
        return most, 0.9 * most * each_us, most * each_us

    return batch


def test_batches_end_at_the_marks() -> None:
    """Without a limit a whole run takes few batches, and what it took by each mark is known exactly."""
    batches: list[int] = []
    ran = run_in_batches(constant(30.0, batches), TimeLimit(math.inf), 1600, MARKS)
    assert ran == PartialRun(
        pytest.approx(0.9 * 48_000.0), 1600, 1600, Progress(LOOP, (750.0, 3e3, 6e3, 12e3, 24e3, 48e3))
    )
    assert set(np.cumsum(batches)) >= set(MARKS.after)
    assert len(batches) <= 14


@pytest.mark.parametrize(
    ("each_us", "loop", "launched"),
    [(30.0, LOOP, 1600), (32.0, LOOP, 1600), (60.0, LOOP, range(55, 71)), (500.0, LOOP, range(7, 9)),
     (60.0, "k in range(0, 1600): S0 S1, after nothing", 1600)],
)  # fmt: skip
def test_a_slow_host_loop_stops_at_its_first_mark(each_us: float, loop: str, launched: int | range) -> None:
    """Over 3 ms by the first of 1600 launches' marks it is stopped there or before; not by the pace of another loop."""
    allowed = TimeLimit(1e6, Progress(loop, (3e3, 3e3, 6e3, 12e3, 24e3, 48e3)))
    ran = run_in_batches(constant(each_us, []), allowed, 1600, MARKS)
    assert ran.launched in (launched if isinstance(launched, range) else [launched])
    assert (ran.us > 3e3) == (ran.launched < 1600) or ran.launched == 1600


def test_marks_are_where_the_same_work_is_done() -> None:
    """Fixed parts of the iterations, in launches; other bounds inside are the same loop, other statements are not."""
    sizes = {"t": 100, "n": 50}

    def course_of(text: str, **at: int) -> Checkpoints:
        found = checkpoints(lower(schedule(Analysis(load(text).codelet)).codelet), {**sizes, **at})
        assert found is not None
        return found

    steps = course_of(STEPS)
    assert steps == Checkpoints("k in range(0, 100): S0 S1, after nothing", (4, 14, 26, 50, 100, 200))
    assert course_of(STEPS, t=1).after == (2, 2, 2, 2, 2, 2)
    assert course_of(STEPS.replace("n - k", "n")).loop == steps.loop
    one = STEPS.replace("for (int i = 0; i < n - k; i++) x[i] = 0.5f * y[i];", "")
    before = STEPS.replace("for (int k", "for (int i = 0; i < n; i++) y[i] = 0; for (int k")
    others = [course_of(text).loop for text in (one, before, STEPS.replace("k = 0", "k = 1"), STEPS.replace("k", "l"))]
    assert len({steps.loop, *others}) == 5
    assert course_of(before).after == tuple(n + 1 for n in steps.after)
    assert checkpoints(lower(schedule(Analysis(load(STEPS).codelet)).codelet), {"t": 0, "n": 5}) is None


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
    made = lower(schedule(Analysis(load(text).codelet)).codelet)
    for t in (1, 2, 5, 33, 64):
        found = checkpoints(made, {"t": t, "n": 9})
        assert found is not None
        seen = [env.get("k", -1) for _, env in launches(made.steps, {"t": t, "n": 9})]
        trips = len(range(0, t, 2))
        reached = [2 * -(-trips // part) for part in PARTS]
        assert found.after == tuple(sum(k < end for k in seen) for end in reached)
        assert found.after[-1] == len(seen)


def test_grids_are_remembered_not_changed() -> None:
    """The grid of every launch is the one computed for it alone; None where nothing would run."""
    made = lower(schedule(Analysis(load(STEPS).codelet)).codelet)
    assert has_host_loop(made)
    at = {kernel.name: grid_function(kernel) for kernel in made.kernels}
    seen = list(launches(made.steps, {"t": 9, "n": 6}))
    assert len(seen) == 18
    for kernel, env in seen:
        assert at[kernel.name](env) == (None if 0 in extent(kernel, env) else blocks(kernel, env))
    assert any(at[kernel.name](env) is None for kernel, env in seen)


@pytest.mark.wide
def test_a_cpu_stops_between_two_launches(tmp_path: Path) -> None:
    """Without a limit to speak of all is run, and is what ``run`` does; with a small one only the first steps are."""
    backend = targets.backend("numba-cpu", tmp_path)
    program = backend.load(backend.build(lower(schedule(Analysis(load(STEPS).codelet)).codelet)))
    given = {name: np.arange(50, dtype=np.float32) for name in "xy"}
    whole, limited = ({name: a.copy() for name, a in given.items()} for _ in "ab")
    program.run(whole, {"t": 5, "n": 50})
    ran = program.run_within(TimeLimit(60e6), limited, {"t": 5, "n": 50})
    assert (ran.launched, ran.launches) == (10, 10)
    np.testing.assert_array_equal(limited["x"], whole["x"])
    long = {name: np.ones(200_000, np.float32) for name in "xy"}
    ran = program.run_within(TimeLimit(2e4), long, {"t": 100_000, "n": 200_000})
    assert 0 < ran.launched < ran.launches == 200_000
    assert ran.us >= 2e4


@pytest.mark.wide
def test_a_cpu_keeps_its_pace(tmp_path: Path) -> None:
    """Every mark of a whole run has a time, in order; a version behind another's pace stops long before the limit."""
    backend = targets.backend("numba-cpu", tmp_path)
    program = backend.load(backend.build(lower(schedule(Analysis(load(STEPS).codelet)).codelet)))
    arrays, sizes = {name: np.ones(20_000, np.float32) for name in "xy"}, {"t": 4000, "n": 20_000}
    ran = program.run_within(TimeLimit(math.inf), arrays, sizes)
    assert ran.launched == ran.launches == 8000
    assert ran.pace is not None
    assert len(ran.pace.us) == len(PARTS)
    assert 0 < ran.pace.us[0] < ran.pace.us[-1] <= ran.us
    assert list(ran.pace.us) == sorted(ran.pace.us)
    behind = Progress(ran.pace.loop, (1.0,) * len(PARTS))
    cut_off = program.run_within(TimeLimit(60e6, behind), arrays, sizes)
    assert cut_off.launched < 8000
    assert cut_off.us > 1.0


@pytest.mark.parametrize(
    ("us", "passed", "best_at_cutoff_us", "where"),
    [(301e3, 3, None, ""), (7e3, 0, 2e3, "before 1/64"), (16e3, 1, 5e3, "before 1/16"), (16e3, 2, 5e3, "at 1/16"),
     (31e3, 2, 10e3, "before 1/8"),
     (200e3, 6, 60e3, "at the end")],
)  # fmt: skip
def test_where_a_version_was_cut_off(us: float, passed: int, best_at_cutoff_us: float | None, where: str) -> None:
    """At the mark it has passed or the one it did not reach in time; nowhere, where it took too long for all of it."""
    best = Incumbent(100e3, pace=Progress(LOOP, (2e3, 5e3, 10e3, 20e3, 40e3, 60e3)))
    found = pruning.early_stop_outcome(PartialRun(us, 7, 1600, Progress(LOOP, (us,) * passed)), best, "n=13", ())
    assert (found.best_at_cutoff_us, found.where.startswith(where)) == (best_at_cutoff_us, True)
    assert found.cost_us >= 3 * best.us
    assert found.verified == "only at n=13"
    assert from_json(to_json(found)) == found
