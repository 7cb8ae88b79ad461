"""Sections of a derived space for a CPU in which each core has a part of a loop that only adds up.

    for i: for j: { s[j] += r[i] * A[i][j]; q[i] += A[i][j] * p[j] }      loop j: parallel; loop i: rfactor 8

The sums of the nested loop are made of neighbouring elements, and each part has an array of the others, which are added
up at the end: the matrix is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from looptune.ir.nodes import Loop
from looptune.schedule.binding import loop_label

if TYPE_CHECKING:
    from looptune.tune.space.patterns import Patterns

PARTS = "rfactor {8, 2, 4, 16, 64}"


def sections(found: Patterns) -> Iterator[str]:
    """Yield a section for each sequential outermost loop of which all that iterations share is what they add up."""
    for loop in (f for f in found.body if isinstance(f, Loop) and not found.parallel(f)):
        label = loop_label(loop)
        inner = [f"loop {loop_label(s.loop)}: parallel" for s in found.sums if any(s.loop is f for f in loop.body)]
        if inner and found.legal([*inner, f"loop {label}: rfactor 8"]):
            several = f"loop {label}: {{ | unroll 4, jam }}"
            fits = found.legal([*inner, f"loop {label}: unroll 4, jam", f"loop {label}: rfactor 8"])
            yield "\n".join(["for cpu", *found.lines, *inner, *([several] if fits else []), f"loop {label}: {PARTS}"])
