"""Version strips of a tiled loop: complete ones have a constant trip count, and several of their iterations are one.

fill tiles; for k in 0 .. min(16, rest): ...   ==>   fill tiles
                                                     if (rest >= 16) for k in 0 .. 16 by 4: ...
                                                     else for k in 0 .. rest: ...
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.nodes import Annotations, Const, Loop, Stmt
from looptune.ir.rewrite import rewrite_stmts
from looptune.lower.passes.loop_normalization import split_full_strips
from looptune.lower.tiles import ONCE, TileFill, filled_tiles

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def version_strips(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with two versions of each loop that may be cut short and before which tiles are filled."""
    if kernel.tiles is None:
        return kernel

    def rule(stmt: Stmt) -> Stmt | None:
        tiles = filled_tiles(stmt)
        if not tiles or not isinstance(stmt, Loop):
            return None
        made = split_full_strips(stmt, {t.name: t.vector for t in tiles})
        if made == (stmt,):
            return None
        bare = split_full_strips(stmt.without(TileFill), {t.name: t.vector for t in tiles})
        return Loop(ONCE, Const(0), Const(1), bare, span=stmt.span, annotations=Annotations((TileFill(tiles),)))

    return replace(kernel, tiles=replace(kernel.tiles, body=rewrite_stmts(rule, kernel.tiles.body)))
