"""Sections of waves of tiles, for perfect nests without a parallel loop: each tile is one thread's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING

from looptune.ir.nodes import Loop, While
from looptune.ir.rewrite import walk
from looptune.schedule.binding import loop_label
from looptune.tune.space.patterns import Patterns, band_of

if TYPE_CHECKING:
    from looptune.ir.nodes import Stmt

WAVED, SKEWED = 3, 2
"""Of waves of tiles: the loops of a nest at most, and the largest factor by which a loop is skewed."""
TILES = ("{8, 4, 2}", "{4, 2, 8}"), ("{8, 16}", "{32, 64}")
"""Iterations in a tile of the outermost loop and of the others, on a GPU and on a CPU."""
TILE_BLOCKS = "codelet: grid blocksize {32x1, 64x1, 32x4}"


def tiled_waves(found: Patterns) -> Iterator[str]:
    """Yield waves of tiles for perfect nests without a parallel loop; each tile is one thread's."""
    for outer in (f for f in found.body if isinstance(f, Loop)):
        band = band_of(outer)
        perfect = all(f.body == (inner,) for f, inner in pairwise(band)) and band[-1].body == _innermost(band)
        if not perfect or not 2 <= len(band) <= WAVED or any(map(found.parallel, band)):
            continue
        skewed = _skew(found, band)
        if skewed is None:
            continue
        label, names = loop_label(outer), ", ".join(f.var for f in band)
        first, more = TILES[0], TILES[1]
        for device, sizes, blocks in (("gpu", first, [TILE_BLOCKS]), ("cpu", more, [])):
            tiles = ", ".join([sizes[0], *[sizes[1]] * (len(band) - 1)])
            yield "\n".join([f"for {device}", *skewed, f"loop {label}: wavefront {names}, tile {tiles}", *blocks])


def _innermost(band: Sequence[Loop]) -> tuple[Stmt, ...]:
    """Return the statements of the innermost loop that are no loops."""
    return tuple(s for s in band[-1].body if not any(isinstance(n, (Loop, While)) for n in walk(s)))


def _skew(found: Patterns, band: Sequence[Loop]) -> list[str] | None:
    """Return the line that skews the nest by the least multiples of outer loops with which tiles are legal, or None.

    An empty list where none is needed.
    """
    label, moved = loop_label(band[0]), list[str]()
    for k in range(1, len(band)):
        inside = band[: k + 1]
        tile = f"loop {label}: tile {', '.join(f'{f.var}:4' for f in inside)}"
        factors = sorted(product(range(SKEWED + 1), repeat=k), key=lambda each: (sum(each), each))
        for each in factors:
            by = " + ".join(f.var if c == 1 else f"{c}*{f.var}" for c, f in zip(each, band, strict=False) if c)
            skew = [*moved, f"{band[k].var} by {by}"] if by else moved
            if found.legal([*([f"loop {label}: skew {', '.join(skew)}"] if skew else []), tile]):
                moved = skew
                break
        else:
            return None
    return [f"loop {label}: skew {', '.join(moved)}"] if moved else []
