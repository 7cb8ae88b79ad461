"""Sections of a derived space for products whose sums differ in length: ``k < i`` for the element of row i, on a GPU.

box         all threads of a block reach the same strips, of which those are left out that none of them needs
tiles       several rows and columns a thread, and what they read in shared memory
permute     where an element's row is its inner loop, so that neighbouring threads write neighbouring elements
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Load
from looptune.ir.rewrite import walk_stmts
from looptune.schedule.binding import at_loops, loop_label
from looptune.tune.space.patterns import is_smooth

if TYPE_CHECKING:
    from looptune.tune.space.patterns import Patterns, ReductionPattern

TILES = (("unroll {4, 8}, jam", "unroll 4, jam", "{16x16, 16x8}"),)
"""What the outer and the inner parallel loop are, and the blocks."""
STRIP = 16
"""Iterations of the sum a tile has; the loops of a box end at multiples of it."""


def sections(found: Patterns, products: Sequence[ReductionPattern], first: Sequence[str]) -> Iterator[str]:
    """Yield the sections; ``first`` are the lines that they begin with."""
    uneven = [p for p in products if p.uneven and p.reused and not p.triangular]
    for outer, inner, blocks in TILES:
        fit = [p for p in uneven if found.legal(_lines([p], outer, inner))]
        if fit and found.legal(_lines(fit, outer, inner)):
            yield "\n".join([*first, *_lines(fit, outer, inner), f"codelet: grid blocksize {blocks}"])


def _lines(products: Sequence[ReductionPattern], outer: str, inner: str) -> list[str]:
    turned = [p for p in products if _is_turned(p)]
    rows = [p.inner if p in turned else p.outer for p in products]
    columns = [p.outer if p in turned else p.inner for p in products]
    return [
        *(f"loop {loop_label(p.outer)}: permute {p.inner.var}, {p.outer.var}" for p in turned),
        f"{at_loops([*rows, *columns, *(p.loop for p in products)])}: box {STRIP}",
        f"{at_loops(rows)}: {outer}",
        f"{at_loops(columns)}: {inner}",
        f"{at_loops([p.loop for p in products])}: tile {STRIP}",
        *(f"loop {loop_label(p.loop)}: stage {', '.join(p.reused)}, buffers 2, unroll {STRIP}" for p in products),
    ]


def _is_turned(product: ReductionPattern) -> bool:
    """Tell whether the outer loop counts the columns of the elements that are summed, and of all factors that have it.

    Threads that are neighbours would write a column otherwise. Where a factor's rows are the outer loop's, they read it
    from shared memory by columns in exchange, which is slower.
    """
    targets = [s.target for s in walk_stmts(product.loop.body) if isinstance(s, Assign)]
    turned = any(isinstance(t, Load) and product.outer.var in names_in(t.index[-1]) for t in targets)
    return turned and is_smooth(product.loop, product.outer.var)
