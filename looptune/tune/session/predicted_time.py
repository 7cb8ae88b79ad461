"""The predicted times of the versions of a sweep: which of them are built and measured first, and which not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from looptune.tune.cost_model import devices
from looptune.tune.cost_model.estimate import estimate

if TYPE_CHECKING:
    from looptune.lower.plan import Plan
    from looptune.tune.cost_model.devices import Chip
    from looptune.tune.session.prepare import PreparedRun


def time_model(prepared: PreparedRun) -> Callable[[Plan], float] | None:
    """Return what predicts the microseconds of a plan on the device of a sweep; it can be pickled.

    None where that is no NVIDIA GPU, or where the sweep has no budget of seconds: it then measures all versions that
    its strategy proposes. A chip of which nothing is known is predicted as the default one, since only ratios matter.
    """
    facts = prepared.facts
    if prepared.budget.seconds is None or not prepared.request.sweep or not facts.arch.startswith("sm_"):
        return None
    chip = next((chip for chip in devices.CHIPS if chip.name == facts.name), devices.DEFAULT)
    return partial(predicted_us, prepared.sizes, chip)


def predicted_us(sizes: Mapping[str, int], chip: Chip, plan: Plan) -> float:
    """Return the predicted microseconds of a plan with these sizes."""
    return estimate(plan, sizes, chip).time_us
