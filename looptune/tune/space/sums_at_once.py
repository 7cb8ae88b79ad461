"""Sections of a derived space for sums along the rows of an array and along its columns, from one read of it.

for i: for j: q[i] += A[i][j] * p[j]        loop j: fuse        rows in turn, each with a part of all columns' sums
for i: for j: s[j] += A[i][j] * r[i]
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from looptune.ir.def_use import written_names
from looptune.ir.nodes import Loop
from looptune.ir.rewrite import has_loop
from looptune.schedule.binding import loop_label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from looptune.tune.space.patterns import Patterns, ReductionPattern

VECTORS = "vectorize {2, 4}"
CORES = "rfactor {2, 4, 8, 16, 64}"


def sections(found: Patterns) -> Iterator[str]:
    """Yield sums along the rows of an array and beside each other, from one read.

    Rows in turn, by a block or a core with a part of the others.
    """
    rows = [s for s in found.sums if s.contiguous and len(s.around) == 1]
    columns = [s for s in found.sums if not s.contiguous and len(s.around) == 1]
    for row, column in ((r, c) for r in rows for c in columns):
        inner, outer = column.around[0], column.loop
        turn = [] if column.outside_target_loop else [f"loop {loop_label(inner)}: permute {outer.var}, {inner.var}"]
        begun = found.before(row.around[0], outer if column.outside_target_loop else inner)
        joined = loop_label(found.before(row.loop, inner))
        apart = [f"loop {loop_label(row.loop)}: parallel"], "{ | unroll {2, 4}, jam }"
        at_once = [f"loop {joined}: fuse", f"loop {joined}: parallel"], "unroll {2, 4, 8}, jam"
        for (first, fuse), (lines, jam) in product(_joined(found, begun), (at_once, apart)):
            whole, split = [*turn, f"loop {first}: {fuse}", *lines], f"loop {first}: rfactor {{128, 256, 512}}"
            if found.legal([*whole, split]):
                blocks = "codelet: grid blocksize {32x8, 32x16, 32x32}"
                yield "\n".join(["for gpu", *whole, f"loop {first}: {jam}", split, blocks])
                reading = [joined] if lines is at_once[0] else [loop_label(row.loop), loop_label(inner)]
                for several in ([*_first_values(found, column), *reading], reading):
                    if found.legal([*whole, *(f"loop {f}: vectorize 4" for f in several), split]):
                        wide = [f"loop {first}: unroll {{2, 4}}, jam", f"loop {', '.join(several)}: {VECTORS}"]
                        yield "\n".join(["for gpu", *whole, *wide, split, "codelet: grid blocksize {32x8, 32x16}"])
                        break
                yield "\n".join(["for cpu", *whole, f"loop {first}: {{ | unroll 4, jam }}", f"loop {first}: {CORES}"])
                break


def _joined(found: Patterns, begun: Loop) -> Iterator[tuple[str, str]]:
    """Yield what makes one loop of this and the next: with the one before it as well, where that only begins it."""
    before = found.preceding_loop(begun)
    if before is not None:
        yield loop_label(before), "fuse 3"
    yield loop_label(begun), "fuse"


def _first_values(found: Patterns, s: ReductionPattern) -> list[str]:
    """Return the loops by themselves that only assign what the sum is added to."""
    loops = (f for f in found.body if isinstance(f, Loop) and f is not s.loop)
    alone = (f for f in loops if not has_loop(f.body))
    return [loop_label(f) for f in alone if written_names(f.body) <= written_names(s.loop.body)]
