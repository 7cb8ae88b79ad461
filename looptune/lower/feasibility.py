"""What some directives ask of the nest when all are applied, for what the others make of it decides.

    split        iterations can be dealt out to blocks        see ``lower/passes/split_reduction``
    overlap      steps can be taken at once                   see ``lower/passes/temporal_tiling``
    persistent   launches can be one                          see ``persistent``

``schedule`` asks once no directive is left.
"""

from __future__ import annotations

from dataclasses import replace

from looptune.core.errors import Unfit
from looptune.ir.nodes import Codelet, Loop, Stmt
from looptune.ir.rewrite import rewrite_stmts
from looptune.lower import feasibility_b
from looptune.lower.passes import split_reduction, temporal_tiling


def unfit(codelet: Codelet, *, tiles: bool) -> tuple[str, Unfit] | None:
    """The first directive that does not fit, by its name, with its loop and why; ``tiles``: nor one that leaves too
    little of a block's."""
    name = "split"
    try:
        split_reduction.check(codelet)
        name = "overlap"
        temporal_tiling.check(codelet, tiles=tiles)
        name = "persistent"
        feasibility_b.check(codelet)
    except Unfit as no:
        return name, no
    return None


def without(codelet: Codelet, loop: Loop, name: str) -> Codelet:
    """The codelet with nothing of that asked of the loop."""

    def rule(n: Stmt) -> Stmt | None:
        if not (isinstance(n, Loop) and n == loop):
            return None
        match name:
            case "split":
                return replace(n, parts=1)
            case "overlap":
                return replace(n, overlap=())
        return replace(n, persistent=0)

    return replace(codelet, body=rewrite_stmts(rule, codelet.body))
