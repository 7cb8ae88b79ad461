"""The steps of a version's evaluation: the plans at the sizes of each, and the binaries built from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from looptune.backends.base import Binary, Resources
from looptune.ir.nodes import Codelet
from looptune.ir.specialize import specialize
from looptune.lower.addresses import MOST_ELEMENTS
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan, needs_wide_indices
from looptune.runtime.outcome import Timed
from looptune.tune.execution.worker_loop import PickledValue
from looptune.tune.measure.prime_sizes import PrimeSizeRun
from looptune.tune.measure.pruning import WAITED_US

if TYPE_CHECKING:
    from looptune.runtime.problem_sizes import Problem
    from looptune.tune.job import Job


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of a version.

    ``timed``: the plan at the user's sizes; ``codelet``: the codelet to plan for prime sizes, which not every version
    reaches; None if one plan serves all sizes.
    """

    timed: Plan
    codelet: Codelet | None


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One step of the evaluation of a version: what to build and measure.

    The step runs at prime sizes (``at_prime_sizes``), at sizes at which loops do not run (``at_edge_sizes``), or else
    at the user's sizes. ``checked``, ``timed``: results of the steps before. ``finished``: the plan at the user's sizes
    as the backend takes it, where it is known; only the process that builds it unpickles it.
    """

    plans: Plans
    at_prime_sizes: bool = False
    at_edge_sizes: bool = False
    checked: PrimeSizeRun | None = None
    timed: Timed | None = None
    finished: PickledValue | None = None

    def plan(self, odd: Problem | None) -> Plan:
        """Return the plan to build; ``odd`` are the prime sizes, None if the codelet has none."""
        codelet, timed = self.plans.codelet, self.plans.timed
        if self.at_edge_sizes and codelet is not None:
            made = lower(codelet, timed.schedule_text, blocks=True)
        elif not self.at_prime_sizes or codelet is None or odd is None:
            return timed if self.finished is None else self.finished.load()
        else:
            made = lower(specialize(codelet, odd.values), timed.schedule_text, blocks=True)
        return replace(made, wide_indices=timed.wide_indices or needs_wide_indices(timed))


@dataclass(frozen=True, slots=True)
class Built:
    """A built version: the step it is for, and its binary."""

    step: BuildStep
    binary: Binary


@dataclass(frozen=True, slots=True)
class VersionSources:
    """Sources and resources of a version.

    ``transformed``: the C after its directives; ``emitted``: the kernel source; ``resources``: registers and spill
    bytes per thread, shared bytes per block, of each kernel.
    """

    transformed: str
    emitted: str
    resources: tuple[Resources, ...]


@dataclass(frozen=True, slots=True)
class Finalist:
    """A built finalist.

    ``sources``: what is shown of it if it wins; ``timed``: its binary at the user's sizes; ``at_prime_sizes``,
    ``at_edge_sizes``: those with which it is verified once more, None where what was verified in the search is the same
    code, or where a job has no such sizes.
    """

    sources: VersionSources
    timed: Binary
    at_prime_sizes: Binary | None = None
    at_edge_sizes: Binary | None = None


def plans_of(job: Job, codelet: Codelet, note: str) -> Plans:
    """Return the plans to compile: with constant sizes, at the user's and at the prime ones, or one for all sizes."""
    if not job.target.specializes_sizes:
        return Plans(lower(codelet, note), None)
    timed = lower(specialize(codelet, job.problem.values), note, blocks=True)
    # The lengths of arrays without declared extents are those of this problem.
    large = any(prod(shape) > MOST_ELEMENTS for shape in job.problem.shapes.values())
    return Plans(replace(timed, wide_indices=large), None if job.prime_problem is None else codelet)


def first_step(job: Job, plans: Plans, longest_us: float | None = None) -> BuildStep:
    """Return the first step of a version: at prime sizes if the job screens there, else at the user's sizes.

    ``longest_us``: for how long a run is predicted to keep the device at the user's sizes. A version for which that is
    short needs no screening. It has a time after one build instead of two, and its kernels for prime sizes take longer
    to compile than those that are timed; it is verified at prime sizes once it is known to be promising.
    """
    short = longest_us is not None and longest_us < WAITED_US
    return BuildStep(plans, at_prime_sizes=job.screens and not short and plans.codelet is not None)
