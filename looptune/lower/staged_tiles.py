"""The tiles that loops request: the arrays that a block copies to shared memory, and how; see ``stage``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from looptune.ir.nodes import Annotations, Loop, Node
from looptune.schedule.directives.stage import StagedTiles

_NONE = StagedTiles(())


def staged_tiles(loop: Loop) -> StagedTiles:
    """Return the tiles that a block copies before it runs the loop; none if no directive requests any."""
    said = loop.annotation(StagedTiles)
    return _NONE if said is None else said


def without_tiles(loop: Loop, arrays: Collection[str]) -> Loop:
    """Return the loop without these arrays among those of which it has tiles."""
    said = staged_tiles(loop)
    left = tuple(a for a in said.arrays if a not in arrays)
    if left == said.arrays:
        return loop
    rest = replace(loop, annotations=Annotations(a for a in loop.annotations if a is not said))
    return rest.annotated(replace(said, arrays=left)) if left else rest


def with_copies_made(loop: Loop) -> Loop:
    """Return the loop without arrays to copy; how often it is unrolled stays."""
    said = staged_tiles(loop)
    made = StagedTiles((), tile_unroll=said.tile_unroll)
    return replace(loop, annotations=Annotations((*(a for a in loop.annotations if a is not said), made)))


def staging_loops(nodes: Iterable[Node]) -> list[Loop]:
    """Return the loops among these nodes before which tiles are copied."""
    return [n for n in nodes if isinstance(n, Loop) and n.annotation(StagedTiles) is not None]


def staged_arrays(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the arrays whose tiles are copied before one of the loops in these nodes, in order."""
    return tuple(dict.fromkeys(a for f in staging_loops(nodes) for a in staged_tiles(f).arrays))
