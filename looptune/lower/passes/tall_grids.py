"""Launch the blocks of a grid with many rows along x, of which a GPU takes more than along y.

    i along y, j along x:  blocks (x, y)        ==>        blocks (y, x), and each takes its numbers the other way round

A GPU takes 2^31 - 1 blocks along x, and 65,535 along y. Threads are where they were, so that neighbours still access
adjacent elements; only the order in which blocks begin is another one, which is why other grids stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Const
from looptune.lower.plan import MOST_BLOCKS_Y, Kernel, Plan, evaluate_size, launched_grid, with_kernels

if TYPE_CHECKING:
    from collections.abc import Mapping


def launch_rows_along_x(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel, its blocks exchanged if those along y are known to be too many, and those along x are not."""
    return _exchanged(kernel, {})


def exchange_blocks(plan: Plan, sizes: Mapping[str, int]) -> tuple[Plan, frozenset[str]]:
    """Return the plan for these sizes of a call, and the names of the kernels whose blocks had to be exchanged."""
    made = with_kernels(plan.steps, lambda kernel: _exchanged(kernel, sizes))
    changed = replace(plan, steps=made)
    return changed, frozenset(k.name for k in changed.kernels if k.exchanged)


def _exchanged(kernel: Kernel, sizes: Mapping[str, int]) -> Kernel:
    whole = not kernel.keeps_tiles and not kernel.steps and not kernel.blocks_per_sm
    along = dict(zip((dim for dim, _ in kernel.grid_axes), launched_grid(kernel), strict=True))
    if not whole or kernel.exchanged or "y" not in along or not names_in(tuple(along.values())) <= sizes.keys():
        return kernel
    x, y = (evaluate_size(along.get(dim, Const(1)), sizes) for dim in ("x", "y"))
    return replace(kernel, exchanged=True) if x <= MOST_BLOCKS_Y < y else kernel
