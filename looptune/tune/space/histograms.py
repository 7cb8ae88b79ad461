"""Sections of a derived space for loops whose iterations accumulate into different elements, as in a histogram.

    for i: h[x[i]]++                    GPU: loop i: rfactor 4096      CPU: loop i: rfactor 8
    for i: for j: h[x[i][j]]++          GPU: nest i: permute j, i; loop j: rfactor 4096, so that threads read neighbours

Each part has a copy of the array. A thread of a GPU waits for the memory in every iteration, so there are many of them,
in blocks of few, so that every multiprocessor has some; a block of 128 adds up the copies of an element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from looptune.ir.nodes import Loop
from looptune.schedule.binding import at_loops, loop_label
from looptune.tune.space.patterns import nested

if TYPE_CHECKING:
    from looptune.tune.space.patterns import Patterns

    Choice = tuple[tuple[str, ...], Loop]

GPU_PARTS, CPU_PARTS = (4096, 16384, 1024), (8, 2, 4, 16, 64)
"""The first is tried first."""
FEWER = (256, 64, 16, 2)
"""Of large arrays, where no other number of copies has room."""
BLOCKS = "codelet: grid blocksize {128x1, 32x1}"


def sections(found: Patterns) -> Iterator[str]:
    """Yield sections in which every nest that has such loops divides one of them, first those that win most often."""
    for device, counts, last in (("gpu", GPU_PARTS, [BLOCKS]), ("cpu", CPU_PARTS, [])):
        nests = list(_nests(found, turning=device == "gpu"))
        for k in range(max(map(len, nests), default=0)):
            chosen = [choices[min(k, len(choices) - 1)] for choices in nests]
            turned, loops = [line for lines, _ in chosen for line in lines], [loop for _, loop in chosen]
            fit = _fitting(found, turned, loops, counts)
            if fit:
                parts = f"{at_loops(loops)}: rfactor {{{', '.join(map(str, fit))}}}"
                yield "\n".join([f"for {device}", *found.lines, *turned, parts, *last])


def is_histogram(found: Patterns, loop: Loop) -> bool:
    """Return whether parts of the loop's iterations can have copies of what it accumulates into, and only they."""
    place = f"loop {loop_label(loop)}"
    return found.legal([f"{place}: rfactor 2"]) and not found.legal([f"{place}: parallel"])


def _nests(found: Patterns, *, turning: bool) -> Iterator[list[Choice]]:
    """Yield the choices of each nest: the directives before the division, and the loop to divide.

    ``turning``: a loop directly inside of one to divide is put outside, if that is legal.
    """
    nests: dict[str, list[Choice]] = {}
    outside: list[Loop] = []
    for around, loop in nested(found.body):
        if any(map(found.parallel, (*around, loop))) or loop in outside or not is_histogram(found, loop):
            continue
        turned = list(_turned(found, loop)) if turning else []
        outside += [inner for _, inner in turned]
        nests.setdefault(loop_label((*around, loop)[0]), []).extend([*turned, ((), loop)])
    yield from nests.values()


def _turned(found: Patterns, loop: Loop) -> Iterator[Choice]:
    """Yield the loop directly inside with the permutation that puts it outside, where threads read neighbours."""
    match loop.body:
        case (Loop() as inner,):
            line = f"loop {loop_label(loop)}: permute {inner.var}, {loop.var}"
            if found.legal([line, f"loop {loop_label(inner)}: rfactor 2"]):
                yield (line,), inner


def _fitting(found: Patterns, turned: Sequence[str], loops: Sequence[Loop], counts: Sequence[int]) -> list[int]:
    """Return those of the numbers of parts whose copies have room, or else the largest smaller one."""

    def fits(parts: int) -> bool:
        return found.legal([*turned, f"{at_loops(loops)}: rfactor {parts}"])

    fit = [parts for parts in counts if fits(parts)]
    return fit or next(([parts] for parts in FEWER if fits(parts)), [])
