"""The statements by which lane 0 of a team adds the lanes' partial results to elements of arrays.

y[i] op= sum; z[i] op= other                    all are loaded before the first is stored, if no two can be the same
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.nodes import Load, Stmt
from looptune.lower.passes.init_fusion import are_disjoint
from looptune.lower.team import Phase, TeamBranch, TeamLoop, TeamReduce

if TYPE_CHECKING:
    from looptune.ir.accumulators import Accumulator
    from looptune.lower.plan import Kernel, Plan


def make_updates(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with the updates of its team's reductions."""
    if kernel.team is None:
        return kernel
    return replace(kernel, team=replace(kernel.team, phases=tuple(map(_updated, kernel.team.phases))))


def _updated(phase: Phase) -> Phase:
    match phase:
        case TeamReduce(_, into):
            return replace(phase, updates=tuple(_updates([a for a in into if isinstance(a.target, Load)])))
        case TeamLoop(_, body):
            return replace(phase, body=tuple(map(_updated, body)))
        case TeamBranch(_, then, other):
            return replace(phase, then=tuple(map(_updated, then)), other=tuple(map(_updated, other)))
    return phase


def _updates(into: Sequence[Accumulator]) -> list[Stmt]:
    if not are_disjoint(into):
        return [a.update for a in into]
    loads = [a.fetched for a in into if a.first is None]
    return [*loads, *(a.if_nonempty(a.updated(a.partner)) for a in into)]
