"""The predicted times of the versions of a sweep.

With a budget of time they decide which versions are built and measured first, and which not at all; without one they
decide which versions are tried at reduced sizes first. A strategy that learns from predictions has those of the whole
space before its first question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from looptune.tune.cost_model import devices
from looptune.tune.cost_model.estimate import estimate
from looptune.tune.execution.executor import compile_all
from looptune.tune.execution.worker_loop import TaskResult
from looptune.tune.measure.evaluate import KernelBuilder

if TYPE_CHECKING:
    from looptune.lower.plan import Plan
    from looptune.tune.cost_model.devices import Chip
    from looptune.tune.execution.executor import Executor
    from looptune.tune.session.prepare import PreparedRun
    from looptune.tune.strategies import Strategy

MOST = 2000
"""Versions of a space that are all predicted before a search."""
TOGETHER = 8
"""Versions that a process predicts in one task."""


def time_model(prepared: PreparedRun) -> Callable[[Plan], float] | None:
    """Return what predicts the microseconds of a plan on the device of a sweep; it can be pickled.

    None where that is no NVIDIA GPU, or where the sweep has no budget of seconds: it then measures all versions that
    its strategy proposes. A chip of which nothing is known is predicted as the default one, since only ratios matter.
    """
    limited = prepared.budget.seconds is not None and prepared.request.sweep
    return _device_model(prepared) if limited else None


def screening_model(prepared: PreparedRun) -> Callable[[Plan], float] | None:
    """Return what predicts for how many microseconds a run of a plan cannot be stopped; it can be pickled.

    None where that decides nothing: without a sweep, in a budget of time, which has predictions of its own, where no
    version is tried at reduced sizes, where all are measured whole, or if the device is no NVIDIA GPU.
    """
    job = prepared.job
    if not (prepared.request.sweep and job.screens and job.cuts) or prepared.budget.seconds is not None:
        return None
    chip = _chip(prepared)
    return None if chip is None else partial(unstoppable_us, prepared.sizes, chip)


def _device_model(prepared: PreparedRun) -> Callable[[Plan], float] | None:
    chip = _chip(prepared)
    return None if chip is None else partial(predicted_us, prepared.sizes, chip)


def _chip(prepared: PreparedRun) -> Chip | None:
    facts = prepared.facts
    if not facts.arch.startswith("sm_"):
        return None
    return next((chip for chip in devices.CHIPS if chip.name == facts.name), devices.DEFAULT)


def predict_spaces(
    prepared: Sequence[PreparedRun], strategies: Sequence[Strategy], executor: Executor
) -> tuple[Strategy, ...]:
    """Return the strategies, those that learn from predictions with those of their spaces, made by all processes.

    Only of NVIDIA GPUs, without a budget of time, and of spaces of at most MOST versions: the directives of a version
    are applied for its prediction, which takes a tenth of a second of one core.
    """
    models = {
        n: model
        for n, (p, s) in enumerate(zip(prepared, strategies, strict=True))
        if s.predictable and p.budget.seconds is None and p.space.size <= MOST
        if (model := _device_model(p)) is not None
    }
    if not models:
        return tuple(strategies)
    labs = [KernelBuilder(prepared[n].job, prepared[n].context, model) for n, model in models.items()]
    tasks = [
        (k, "predict", every[at : at + TOGETHER])
        for k, every in enumerate(tuple(prepared[n].space) for n in models)
        for at in range(0, len(every), TOGETHER)
    ]
    one = prepared[0]
    with executor.open(labs, [prepared[n].model for n in models], one.jobs, one.request.timeout_s) as workers:
        replies = compile_all(workers, tasks)
    found: dict[int, dict[str, float]] = {n: {} for n in models}
    for (k, _, _), reply in zip(tasks, replies, strict=True):
        if isinstance(reply, TaskResult):
            found[list(models)[k]] |= reply.value
    return tuple(s.with_predictions(found[n]) if n in found else s for n, s in enumerate(strategies))


def predicted_us(sizes: Mapping[str, int], chip: Chip, plan: Plan) -> float:
    """Return the predicted microseconds of a plan with these sizes."""
    return estimate(plan, sizes, chip).time_us


def unstoppable_us(sizes: Mapping[str, int], chip: Chip, plan: Plan) -> float:
    """Return for how many microseconds a run of a plan with these sizes cannot be stopped, as predicted."""
    return estimate(plan, sizes, chip).unstoppable_us
