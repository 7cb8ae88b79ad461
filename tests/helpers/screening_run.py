"""A version that is measured at reduced sizes and then at its own."""

from __future__ import annotations

import pickle

from looptune.runtime.outcome import Outcome
from looptune.tune.execution.lab import NextStep
from looptune.tune.incumbent import Incumbent
from looptune.tune.measure.build_steps import Built, Plans, first_step
from looptune.tune.measure.measuring_device import MeasuringDevice


def measured(
    bench: MeasuringDevice, plans: Plans, best: Incumbent | None, predicted_us: float | None = None
) -> Outcome:
    """Step after step, as a sweep does it."""
    step = first_step(bench.job, plans, predicted_us)
    for _ in range(3):
        said = bench.measure(Built(step, bench.backend.build(step.plan(bench.job.prime_problem))), best)
        if not isinstance(said, NextStep):
            return said
        step = pickle.loads(said.task.contents)
    raise AssertionError("three steps are all there are")
