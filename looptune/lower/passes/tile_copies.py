"""The copies by which threads fill tiles: each thread copies single elements, or 16 bytes at a time.

    tile of 8 x 16 elements, 64 threads: two copies, of the elements number slot and slot + 64
    slot + 64, in row place0 + 4 and column place1:     tile[(place0 + 4) * 16 + place1] = A[...]

A tile for a later iteration is filled in the iterations of the loop around, one buffer after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from looptune.ir.intervals import Range, difference_range, range_of
from looptune.ir.nodes import Const, Expr, Load, Node, Var
from looptune.ir.rewrite import rewrite
from looptune.ir.simplify import add, mul
from looptune.lower.passes.flat_arrays import flat_index
from looptune.lower.thread_code import ThreadWalk
from looptune.lower.tiles import AHEAD, Tile, TileCopy, copy_place

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan

STRAIGHT = 16
"""So many copies a thread makes one after the other; more in a loop."""


def make_copies(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with the copies that fill its tiles."""
    return kernel if kernel.tiles is None else _Copies(kernel, plan).run()


class _Copies(ThreadWalk):
    def filled(self, tile: Tile, buffers: tuple[Expr, ...]) -> Tile:
        moved = replace(tile, origin=_ahead(tile)) if tile.prefetch_loop else tile
        return replace(tile, copies=tuple(tuple(self._of_buffer(moved, b)) for b in buffers))

    def _of_buffer(self, tile: Tile, buffer: Expr) -> Iterator[TileCopy]:
        threads = prod(self.kernel.block)
        rounds = -(-prod(tile.row_copies) // threads)
        for k in range(rounds if rounds <= STRAIGHT else 1):
            yield self._copy(tile, k * threads, buffer)

    def _copy(self, tile: Tile, skipped: int, buffer: Expr) -> TileCopy:
        """Whole rows of what is skipped are a constant of the place: all copies of a thread share a division."""
        counts, further = tile.row_copies, skipped
        for n in reversed(counts[1:]):
            further = 0 if further % n else further // n
        places = tuple(copy_place(d) for d in range(len(counts)))
        ranges = {**self.ranges, **{v.name: (0, n - 1) for v, n in zip(places, counts, strict=True)}}
        ranges[places[0].name] = (0, counts[0] - 1 - further)
        for v in places:
            self.known.bind(v.name, True)
        first, *inner = (*places[:-1], mul(Const(tile.vector), places[-1]))
        inside = (add(first, Const(further * (tile.vector if len(counts) == 1 else 1))), *inner)
        at = tuple(add(o, v) for o, v in zip(tile.origin, inside, strict=True))
        target = add(mul(buffer, Const(tile.size)), tile.place(inside))
        source = Load(tile.array, (flat_index(Load(tile.array, at, tile.dtype), self.plan),), tile.dtype)
        within = tuple(self._within(tile, at, ranges))
        for v in places:
            self.known.unbind(v.name)
        return TileCopy(skipped, target, source, within)

    def _within(
        self, tile: Tile, at: tuple[Expr, ...], ranges: Mapping[str, Range]
    ) -> Iterator[tuple[Expr, Expr | None]]:
        """Yield the comparisons that say that the element is there, as far as it is not known."""
        for e, n in zip(at, self.plan.array(tile.array).shape, strict=True):
            assert n is not None, "a staged array has all its extents"
            above, below = difference_range(e, n, ranges), range_of(e, ranges)
            if not self.known.never_negative(e) and (below is None or below[0] < 0):
                yield e, None
            if above is None or above[1] >= 0:
                yield e, n


def _ahead(tile: Tile) -> tuple[Expr, ...]:
    """Return where a tile begins in the iteration for which it is filled."""

    def rule(n: Node) -> Node | None:
        return replace(n, name=n.name + AHEAD) if isinstance(n, Var) and n.name == tile.prefetch_loop else None

    moved: tuple[Expr, ...] = rewrite(rule, tile.origin)
    return moved
