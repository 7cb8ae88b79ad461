"""Apply the directive of the same name in every thread: sums with common factors or terms are accumulated in locals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.schedule.directives.reduction_simplification import regroupable_statements, simplify_reductions

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def share_sums(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with such sums in locals.

    A team of threads adds up by itself, and what a block takes through several steps stays as it is.
    """
    if kernel.team is not None or kernel.keeps_tiles:
        return kernel
    suitable = regroupable_statements(kernel.loops, kernel.body)
    body, holding, sums = simplify_reductions(kernel.body, suitable, plan.used_names)
    return replace(kernel, body=body, locals=kernel.locals + holding, sums=sums + kernel.sums)
