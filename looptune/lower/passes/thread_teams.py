"""What a team of threads does, phase by phase, kept in the kernel's team: see ``lower.team``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.lower.passes.scalar_replacement import replace_team_scalars
from looptune.lower.team import team_phases

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def divide_into_phases(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with the phases of its team, and the locals that these need; one without a team as it is."""
    if kernel.team is None:
        return kernel
    taken = plan.used_names
    body, broadcast = replace_team_scalars(kernel.body, taken, kernel.axes)
    phases, made = team_phases(body, kernel.locals + broadcast, taken, kernel.axes)
    return replace(
        kernel, team=replace(kernel.team, phases=phases), locals=(*kernel.locals, *broadcast, *made)
    )  # fmt: skip
