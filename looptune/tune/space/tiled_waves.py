"""Sections of waves of tiles, for perfect nests without a parallel loop.

On a GPU, a tile is a block's, which runs it wave by wave in a copy of its elements, or one thread's; on a CPU it is a
core's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING

from looptune.ir.def_use import written_names
from looptune.ir.nodes import Array, Loop
from looptune.ir.rewrite import has_loop
from looptune.poly.dependence_distance import least_distance_reaches
from looptune.schedule.binding import loop_label
from looptune.tune.space.patterns import Patterns, band_of

if TYPE_CHECKING:
    from looptune.ir.nodes import Stmt

WAVED, SKEWED = 3, 2
"""Of waves of tiles: the loops of a nest at most, and the largest factor by which a loop is skewed."""
TILES = ("{8, 4, 2}", "{4, 2, 8}"), ("{8, 16}", "{32, 64}")
"""Iterations in a tile of the outermost loop and of the others, on a GPU and on a CPU."""
TILE_BLOCKS = "codelet: grid blocksize {32x1, 64x1, 32x4}"
TEAM_TILES = {
    2: (("64, {64, 128}", "64x1"), ("128, {64, 32}", "128x1"), ("32, {128, 64}", "32x1"), ("256, {64, 32}", "256x1")),
    3: (("16, 32, {64, 96, 128}", "32x16"), ("32, 32, {64, 48}", "32x32"), ("8, 32, {64, 128}", "32x8")),
}
"""Iterations of each loop in a tile of a block by the number of loops, with the threads: one for each but the last."""


def shared_waves(found: Patterns) -> Iterator[str]:
    """Yield waves of tiles that the threads of a block share, from shared memory if that is possible."""
    for band, skewed in _wavable(found):
        label, names = loop_label(band[0]), ", ".join(f.var for f in band)
        arrays = [a.name for a in found.analysis.codelet.params if isinstance(a, Array)]
        kept = ", ".join(a for a in arrays if a in written_names(band[-1].body))
        further = skew(found, band, ordered=True)
        moved, team = (skewed, "team") if further is None else (further, f"team:{band[-1].var}")
        for sizes, block in TEAM_TILES[len(band)]:
            lines = [*moved, f"loop {label}: wavefront {names}, tile {sizes}, {team}"]
            staged = [*lines, f"loop {label}: stage {kept}"]
            chosen = next((some for some in ([staged] if kept else []) + [lines] if found.legal(some)), None)
            if chosen is None:
                break
            yield "\n".join(["for gpu", *chosen, f"codelet: grid blocksize {block}"])


def tiled_waves(found: Patterns) -> Iterator[str]:
    """Yield waves of tiles, each of which is one thread's."""
    for band, skewed in _wavable(found):
        label, names = loop_label(band[0]), ", ".join(f.var for f in band)
        first, more = TILES[0], TILES[1]
        for device, sizes, blocks in (("gpu", first, [TILE_BLOCKS]), ("cpu", more, [])):
            tiles = ", ".join([sizes[0], *[sizes[1]] * (len(band) - 1)])
            yield "\n".join([f"for {device}", *skewed, f"loop {label}: wavefront {names}, tile {tiles}", *blocks])


def _wavable(found: Patterns) -> Iterator[tuple[list[Loop], list[str]]]:
    """Yield perfect nests without a parallel loop, with the lines that skew them for tiles."""
    for outer in (f for f in found.body if isinstance(f, Loop)):
        band = band_of(outer)
        perfect = all(f.body == (inner,) for f, inner in pairwise(band)) and band[-1].body == _innermost(band)
        if not perfect or not 2 <= len(band) <= WAVED or any(map(found.parallel, band)):
            continue
        skewed = skew(found, band)
        if skewed is None:
            continue
        names, sizes = ", ".join(f.var for f in band), ", ".join("4" for _ in band)
        if found.legal([*skewed, f"loop {loop_label(outer)}: wavefront {names}, tile {sizes}, team"]):
            yield band, skewed


def _innermost(band: Sequence[Loop]) -> tuple[Stmt, ...]:
    """Return the statements of the innermost loop that are no loops."""
    return tuple(s for s in band[-1].body if not has_loop(s))


def skew(found: Patterns, band: Sequence[Loop], *, ordered: bool = False) -> list[str] | None:
    """Return the line that skews the nest by the least multiples of outer loops with which tiles are legal, or None.

    An empty list where none is needed. Tiles are legal where no distance of a dependence has a negative component.
    ``ordered``: the last loop carries all dependences, so that its iterations are waves.
    """
    analysis, rank, moved = found.analysis, len(band), list[str]()
    carried = [d.map for d in analysis.model.dependences if not d.commutes(analysis.reassociate)]
    for k in range(1, rank):
        least, most = (1, 2 * SKEWED) if ordered and k == rank - 1 else (0, SKEWED)
        factors = sorted(product(range(most + 1), repeat=k), key=lambda each: (sum(each), each))
        each = next((f for f in factors if least_distance_reaches(carried, (*f, 1), least)), None)
        if each is None:
            return None
        by = " + ".join(f.var if c == 1 else f"{c}*{f.var}" for c, f in zip(each, band, strict=False) if c)
        moved += [f"{band[k].var} by {by}"] if by else []
    return [f"loop {loop_label(band[0])}: skew {', '.join(moved)}"] if moved else []
