"""The loops that a core of a CPU executes for a kernel: those of its axes, around its body, in the order of memory.

grid y, x; body                 for y: for x: body
one sum, divided among cores    the loop that reduces, into the core's own accumulator
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.nodes import Loop, Stmt

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def nest_axes(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with these loops in ``serial``."""
    if not kernel.loops and kernel.team is not None:
        return replace(kernel, serial=(kernel.team.trees[0].loop,))
    body, around = kernel.body, tuple[Loop, ...]()
    match body:
        case (Loop() as loop,) if kernel.team is not None and kernel.team.outer:
            around, body = (loop,), loop.body  # row by row, as the arrays lie
    nest: tuple[Stmt, ...] = body
    for axis in reversed((*around, *kernel.loops)):
        nest = (replace(axis, body=nest),)
    return replace(kernel, serial=nest)
