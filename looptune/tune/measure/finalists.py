"""A finalist as the target's own compiler makes it, and its verification where another compiled the search's versions.

    the search ─▶ times of what the search's compiler made ─▶ the best few
                  │
                  └─▶ each as the target's own compiler makes it: verified at all sizes again ─▶ timed in the finals

NVRTC compiles a kernel in a fraction of the time that Numba takes, and the kernels of both take about the same time
(docs/targets.md), so that a search with it sees several times as many versions. What a user gets is Numba's; therefore
the finals are Numba's, and nothing that was verified of the other compiler's code is taken for granted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from looptune.core.errors import ResourceError
from looptune.ir import c_printer
from looptune.runtime.outcome import Outcome, OverLimit
from looptune.tune.execution.worker_loop import PickledValue, pickle_value
from looptune.tune.measure.build_steps import BuildStep, Finalist, Plans, VersionSources, plans_of
from looptune.tune.measure.device_limits import exceeded

if TYPE_CHECKING:
    from looptune.backends.base import Backend, Binary
    from looptune.ir.nodes import Codelet
    from looptune.tune.job import Job
    from looptune.tune.measure.evaluate import KernelBuilder

CHECKS = ("at_prime_sizes", "at_edge_sizes")
"""What a finalist is verified with, by the fields of ``Finalist``."""


def build_finalist(lab: KernelBuilder, codelet: Codelet, text: str, *, verified: bool = True) -> PickledValue | Outcome:
    """Return the ``Finalist`` of the version with the directives ``text``, or why there is none.

    ``verified``: the search has verified what it compiled at prime sizes. The target's own compiler may use more of a
    resource than a device has, where the search's did not.
    """
    steps = finalist_steps(lab.job, plans_of(lab.job, codelet, text), verified=verified)
    backend = finals_backend(lab, steps)
    if backend is lab.searching and verified:
        timed = backend.build(steps["timed"].plans.timed)
        return pickle_value(Finalist(version_sources(lab, codelet, timed), timed))
    try:
        built = {name: backend.build(step.plan(lab.job.prime_problem)) for name, step in steps.items()}
    except ResourceError as error:
        return OverLimit(error.message)
    over = exceeded(built["timed"].resources)
    sources = version_sources(lab, codelet, built["timed"])
    return pickle_value(Finalist(sources, **built)) if over is None else OverLimit(over)


def version_sources(lab: KernelBuilder, codelet: Codelet, timed: Binary) -> VersionSources:
    """Return the sources of a version that is built for the user's sizes; they are always those of the target."""
    emitted = timed.source if timed.target == lab.backend.name else lab.backend.emit(timed.plan)
    return VersionSources(c_printer.function(codelet), emitted, timed.resources)


def build_check(lab: KernelBuilder, codelet: Codelet, text: str, name: str) -> None:
    """Put kernels with which a finalist is verified into the cache, beside the process that builds the finalist.

    ``name``: which, by the fields of ``Finalist``.
    """
    steps = finalist_steps(lab.job, plans_of(lab.job, codelet, text))
    if name in steps and finals_backend(lab, steps) is not lab.searching:
        # A version of which they exceed a limit has no finalist.
        with contextlib.suppress(ResourceError):
            lab.backend.build_ahead(steps[name].plan(lab.job.prime_problem), 0)


def finals_backend(lab: KernelBuilder, steps: Mapping[str, BuildStep]) -> Backend:
    """Return what compiles a finalist, by its steps.

    That is the target's own compiler, unless it takes longer than a short budget has, at the user's sizes or at prime
    ones, at which all loops have remainders. Then it is the search's, whose code was timed and verified, and tables
    say so.
    """
    if lab.searching is lab.backend or not lab.job.finals_end:
        return lab.backend
    for name in steps.keys() - {"at_edge_sizes"}:
        # The sources of both compilers have about as many lines.
        source = lab.searching.emit(steps[name].plan(lab.job.prime_problem))
        if source.count("\n") / lab.backend.lines_a_second > lab.job.finals_s:
            return lab.searching
    return lab.backend


def finalist_steps(job: Job, plans: Plans, *, verified: bool = True) -> dict[str, BuildStep]:
    """Return the steps at which a finalist is built, by the names of ``Finalist``; see ``build_finalist``."""
    steps = {"timed": BuildStep(plans)}
    if (job.target.search_backend is not None or not verified) and plans.codelet is not None:
        steps["at_prime_sizes"] = BuildStep(plans, at_prime_sizes=True)
        if job.edge_problems:
            steps["at_edge_sizes"] = BuildStep(plans, at_edge_sizes=True)
    return steps
