"""Sections that change one nest or loop alone, as the paper sampled: orders, ``unroll``, ``tile``, ``noParallel``."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from looptune.ir.nodes import Loop, While
from looptune.ir.rewrite import has_load, has_loop, walk
from looptune.schedule.binding import loop_label
from looptune.tune.space.patterns import Patterns, band_of, outermost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FACTORS, SHAPES, ENDS = "{2, 4, 8}", ("contiguous", "split"), "{remainder, guarded}"
"""Of ``unroll``: its factors, the iterations that it puts beside each other, and what it does with the last ones."""
SCHEDULED = "codelet: grid blocksize {32x8, 64x4, 256x1, 32x1}"
DEEPEST = 4
"""Nests of more loops than this are not permuted whole: 120 orders and more are the user's to ask for."""


def nests(found: Patterns) -> Iterator[str]:
    """Yield the orders of each nest, and what unrolls or tiles its innermost loop."""
    for outer in outermost(found.body):
        band = band_of(outer)
        orders = list(_legal(found, band)) if 2 <= len(band) <= DEEPEST else []
        turned = [f"loop {loop_label(outer)}: permute {order}" for order in orders] if len(orders) > 1 else []
        unrolls = _unrolls(found, band[-1], ("noJam",), turned)
        parts = [*unrolls, *_strips(found, band[-1])]
        lines = [f"loop {loop_label(band[-1])}: {{ | {' | '.join(parts)} }}"] if parts else []
        if turned:
            lines.insert(0, f"loop {loop_label(outer)}: permute {{{' | '.join(orders)}}}")
        if lines:
            yield "\n".join(lines)


def orders(found: Patterns) -> Iterator[str]:
    """Yield the orders of each nest, without unrolling its innermost loop."""
    for outer in outermost(found.body):
        band = band_of(outer)
        orders = list(_legal(found, band)) if 2 <= len(band) <= DEEPEST else []
        if len(orders) > 1:
            yield f"loop {loop_label(outer)}: permute {{{' | '.join(orders)}}}\n{SCHEDULED}"


def loops(found: Patterns) -> Iterator[str]:
    """Yield what changes one loop alone."""
    for loop in (n for n in walk(found.body) if isinstance(n, Loop)):
        deep = has_loop(loop.body)
        unrolls = _unrolls(found, loop, ("noJam", "jam") if deep else ("noJam",))
        yield f"loop {loop_label(loop)}: {{ {' | '.join([*unrolls, *_strips(found, loop), 'noParallel'])} }}"


def _strips(found: Patterns, loop: Loop) -> list[str]:
    return [f"tile {loop.var}:{{2, 4, 8}}"] if _divisible(found, loop) else []


def _divisible(found: Patterns, loop: Loop) -> bool:
    """Tell whether the iterations can be counted: data may say how many there are."""
    return not has_load((loop.lo, loop.hi)) or found.legal([f"loop {loop_label(loop)}: tile {loop.var}:2"])


def _unrolls(found: Patterns, loop: Loop, jams: Sequence[str], orders: Sequence[str] = ()) -> Iterator[str]:
    """Yield the unrollings of a loop that are legal, in each of the orders of its nest.

    The smallest factor stands for all, since a dependence seldom allows the smallest only.
    """
    if not _divisible(found, loop):
        return
    turns = [[order] for order in orders] or [[]]

    def legal(words: str) -> bool:
        place = f"loop {loop_label(loop)}"
        merged = words.endswith(" jam") and any(isinstance(n, While) for n in walk(loop.body))
        return (found.parallel(loop) and not merged) or all(
            found.legal([*turn, f"{place}: unroll 2, {words}"]) for turn in turns
        )

    for shape in SHAPES:
        fit = [jam for jam in jams if (shape, jam) == ("contiguous", "noJam") or legal(f"{shape}, remainder, {jam}")]
        if fit:
            choice = f"{{{', '.join(fit)}}}" if len(fit) > 1 else fit[0]
            yield f"unroll {FACTORS}, {shape}, {ENDS}, {choice}"


def _legal(found: Patterns, band: list[Loop]) -> Iterator[str]:
    for order in permutations([f.var for f in band]):
        text = ", ".join(order)
        if found.legal([f"loop {loop_label(band[0])}: permute {text}"]):
            yield text
