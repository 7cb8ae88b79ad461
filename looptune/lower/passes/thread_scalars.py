"""Scalar replacement of elements that a thread uses repeatedly: see ``scalar_replacement``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.lower.passes.thread_teams import scalar_replaced

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def keep_in_scalars(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel whose threads hold such elements in locals.

    The lanes of a team that is a whole block do so in its phases, and blocks that take several steps in their tiles.
    """
    team = kernel.team
    if kernel.keeps_tiles or (team is not None and team.block_axis == "xy"):
        return kernel
    taken = plan.used_names | {v.name for v in kernel.locals}
    body, made = scalar_replaced(kernel.body, taken, kernel.axes, within=team is not None and team.outer)
    return replace(kernel, body=body, locals=(*kernel.locals, *made))
