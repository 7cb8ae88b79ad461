"""Sections of a derived space for products in double precision whose sums the tensor cores of a GPU compute.

each product                       blocks of up to 128 x 128, of 64 x 64, and small ones for few sums
each of which half is enough       the same of its triangle
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from looptune.ir.nodes import Assign, Const, Var
from looptune.ir.rewrite import walk_stmts
from looptune.ir.simplify import add
from looptune.schedule.binding import loop_label
from looptune.tune.space import fitted_tiles

if TYPE_CHECKING:
    from looptune.ir.nodes import Stmt
    from looptune.tune.space.patterns import Patterns, ReductionPattern

TILES = (
    ("tensor, block {128x128, 128x64, 64x128}, warp 64x32, shape 16x8x4", ("codelet: { | swizzle 8 }",)),
    (
        "tensor, {block 64x64, warp {32x32, 32x16} | block 64x48, warp 32x24 | block 48x48, warp 16x24 | "
        "block 96x64, warp 48x32}",
        (),
    ),
    ("tensor, {block 32x64, warp {16x16, 32x16} | block 32x32, warp 16x16}", ()),
)
"""The fastest on an H200 for products of 2048 and more rows and columns, of about 1024, and smaller ones.

Blocks whose sides differ by less than twice are there for the number of blocks: at 1024, a triangle of 64 x 64 has 136,
four more than an H200 has multiprocessors, which then take as long as all the others together.
"""
PACK = "codelet: pack"


def sections(found: Patterns, products: Sequence[ReductionPattern], first: Sequence[str]) -> Iterator[str]:
    """Yield the sections; ``first`` are the lines that they begin with."""
    doubles = [p for p in products if all(_is_double(s) for s in walk_stmts(p.loop.body))]
    around = [line for line in first if line.startswith("loop ") and line not in found.lines]
    for half in (True, False):
        made = [(p, own) for p in doubles if (own := _before(found, p, half, around)) is not None]
        if not made:
            continue
        lines = [line for _, own in made for line in own]
        packed = [PACK] if half or any(p.triangular for p, _ in made) else []
        loops = ", ".join(dict.fromkeys(loop_label(p.loop) for p, _ in made))
        fitted = [] if half else fitted_tiles.of_warps(found, [p for p, _ in made])
        for tiles in fitted:
            yield "\n".join([*first, *lines, f"loop {loops}: {tiles}", *packed])
        for tiles, more in TILES:
            yield "\n".join([*first, *lines, f"loop {loops}: {tiles}", *more, *packed])


def _begins_at_diagonal(product: ReductionPattern) -> bool:
    """Tell whether the elements of a triangle are those from the diagonal on, or up to it, in all of its rows."""
    outer, inner = product.outer, product.inner
    own = Var(outer.var, outer.dtype)
    return (inner.lo == own and inner.hi == outer.hi) or (inner.lo == outer.lo and inner.hi == add(own, Const(1)))


def _is_double(stmt: Stmt) -> bool:
    return isinstance(stmt, Assign) and stmt.target.dtype == "float64"


def _before(found: Patterns, product: ReductionPattern, half: bool, around: Sequence[str]) -> list[str] | None:
    """Return what a product needs besides the directive for tensor cores, or None where that is illegal.

    ``around`` are lines that come first, such as the grids of products that a loop repeats.
    Of a triangle, both loops are the grid's, and begin and end at multiples of what is copied at once: one without its
    diagonal has 217 us for its product instead of 175 on an H200, where each float is copied by itself. A common factor
    is taken out, so that strips are copied as they are.
    """
    loop, outer = loop_label(product.loop), loop_label(product.outer)
    grid = [f"loop {outer}: gridify({product.outer.var}, {product.inner.var})"]
    if product.triangular and not _begins_at_diagonal(product):
        grid = [f"loop {outer}, {loop_label(product.inner)}: box 8", *grid]
    lines = [f"loop {outer}: fold", *grid] if half else grid if product.triangular else []
    for apart in ([f"loop {loop}: factor"], []):
        if found.legal([*around, *lines, *apart, f"loop {loop}: tensor"]):
            return [*lines, *apart]
    return None
