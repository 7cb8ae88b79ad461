"""Sections of a derived space for loops through which threads keep the elements that they own, on a GPU.

    for k: for i: for j: A[i][j] = f(A[i][j], A[i][k], A[k][j])         loop k: resident rows 8, columns 8, shared 4

A multiprocessor holds about 60,000 numbers of 4 bytes in registers and shared memory: the first shape holds large
arrays, the others spread smaller ones over all multiprocessors. They are one section, of which a search tries more
where the first is fast: many elements of a thread are a long text to compile. Loops that tiles fit that overlap have
those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Array, Local, Loop
from looptune.ir.rewrite import walk_stmts
from looptune.schedule.binding import loop_label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from looptune.tune.space.patterns import Patterns

SHAPES = ((8, 8, "{4, 3}"), (8, 4, ""), (4, 4, ""), (2, 2, ""))
"""Rows and columns of a thread's elements of 4 bytes, and its rows in shared memory."""
BLOCK = "32x32"
BYTES = 4
RANK = 2
"""Dimensions of the arrays: a line of them is too little work between two waits of all blocks."""


def sections(found: Patterns) -> Iterator[str]:
    """Yield a section for every sequential loop whose elements have owners."""
    for loop in (f for f in found.steps if f in found.body and found.rank(f) == RANK):
        label = loop_label(loop)
        if not found.legal([f"loop {label}: resident"]) or found.legal([f"loop {label}: overlap 1"]):
            continue
        several = -(-_bytes(found, loop) // BYTES)
        turn = ", cyclic" if _shrinks(loop) else ""
        shapes = " | ".join(
            f"resident rows {rows}, columns {columns // several}{f', shared {shared}' if shared else ''}{turn}"
            for rows, columns, shared in SHAPES
            if columns >= several
        )
        if shapes:
            lines = (f"loop {label}: persistent", f"loop {label}: {{ {shapes} }}", f"codelet: grid blocksize {BLOCK}")
            yield "\n".join(["for gpu", *lines])


def _bytes(found: Patterns, loop: Loop) -> int:
    """Return the bytes of an element of all arrays that the loop writes."""
    codelet, changed = found.analysis.codelet, written_names(loop.body)
    arrays = (v for v in (*codelet.params, *codelet.locals) if isinstance(v, (Array, Local)) and v.shape)
    return sum(np.dtype(v.dtype).itemsize for v in arrays if v.name in changed)


def _shrinks(loop: Loop) -> bool:
    """Return whether nests begin later, or end sooner, in each iteration, and nothing is at the other side."""
    inner = [f for f in walk_stmts(loop.body) if isinstance(f, Loop)]
    begins, ends = (
        any(loop.var in names_in(e) for e in some) for some in zip(*((f.lo, f.hi) for f in inner), strict=True)
    )
    return begins != ends
