"""Tiles that fit the sizes of products: of a product of 140 x 160 elements, blocks of 64 x 64 compute 192 x 192.

threads    rows and columns of each thread that divide those of the product, and blocks that divide what then is left
warps      rows and columns of a block on tensor cores, multiples of what an instruction computes, and of its warps

Nothing is offered where the sizes are not known, where products differ in theirs, or where the usual tiles fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from looptune.tune.space.patterns import Patterns, ReductionPattern

Sides = tuple[int, int]
USUAL = (64, 64)
"""The rows and columns of the usual block."""
ENOUGH = 0.9
"""Where the usual block wastes less than the rest of its elements, no other one is worth a try."""
ROWS, COLUMNS = (4, 5, 6, 7, 8, 9, 10), (4, 5, 6, 8)
"""Of a thread."""
FEWEST_ELEMENTS, MOST_ELEMENTS = 16, 50
"""Of a thread: its sums are in registers, beside what it reads ahead."""
THREADS = (96, 320)
"""The least and the most of a block."""
TALLEST, WIDEST = 32, 40
"""Rows and columns of threads in a block."""
SHAPES, BLOCKS = 4, 3
"""So many shapes of what a thread computes are offered, each with so many blocks."""
FRAGMENT = (16, 8)
"""The rows and columns of an instruction of a tensor core."""
MOST_ROWS, MOST_COLUMNS = 144, 160
WARP_ELEMENTS, MOST_OF_WARP = (768, 2048), 64
"""Of a warp: with more sums its lanes run out of registers, with fewer they load more than they multiply."""
WARPS = (2, 8)
TENSOR_BLOCKS = 6
"""So many blocks are offered."""
STAGES, STRIP, PADDING = 3, 16, 4
"""Of the strips in shared memory, which are of doubles."""
SHARED_BYTES, RESIDENT_WARPS = 227 << 10, 8
"""Of a multiprocessor: its shared memory, and the warps whose sums its registers hold."""
ALONE = 0.2
"""By so much longer a multiprocessor takes that has one block: nothing is multiplied while sums are stored."""


def of_threads(found: Patterns, products: Sequence[ReductionPattern]) -> Iterator[tuple[str, str, str]]:
    """Yield what the outer and the inner parallel loop of the products are, and the blocks; the best first."""
    sides = _sides(found, products)
    if sides is None or _used(sides, USUAL) >= ENOUGH:
        return
    costs = {}
    for each in product(_dividing(ROWS, sides[0]), _dividing(COLUMNS, sides[1])):
        if FEWEST_ELEMENTS <= each[0] * each[1] <= MOST_ELEMENTS:
            costs[each] = sorted((_cost(sides, each, block), block) for block in _blocks())[:BLOCKS]
    for rows, columns in sorted(costs, key=lambda each: costs[each][0])[:SHAPES]:
        inner = "split, vector 4, jam" if columns == 8 else "jam" if columns == 4 else "split, jam"
        blocks = ", ".join(f"{x}x{y}" for _, (y, x) in costs[rows, columns])
        yield f"unroll {rows}, jam", f"unroll {columns}, {inner}", blocks


def of_warps(found: Patterns, products: Sequence[ReductionPattern]) -> Iterator[str]:
    """Yield the directives for tensor cores with blocks that fit, as one choice."""
    sides = _sides(found, products)
    if sides is None or any(p.uneven or p.triangular for p in products) or _used(sides, USUAL) >= ENOUGH:
        return
    costs: dict[Sides, tuple[float, Sides]] = {}
    high, wide = FRAGMENT
    for warp in product(range(high, MOST_OF_WARP + 1, high), range(wide, MOST_OF_WARP + 1, wide)):
        if not WARP_ELEMENTS[0] <= warp[0] * warp[1] <= WARP_ELEMENTS[1]:
            continue
        for block in product(range(warp[0], MOST_ROWS + 1, warp[0]), range(warp[1], MOST_COLUMNS + 1, warp[1])):
            if WARPS[0] <= block[0] * block[1] // (warp[0] * warp[1]) <= WARPS[1]:
                cost = _cost(sides, warp, _over(block, warp)) * (1 + ALONE / _resident(block, warp))
                costs[block] = min(costs.get(block, (cost, warp)), (cost, warp))
    best = sorted(costs, key=lambda block: costs[block])[:TENSOR_BLOCKS]
    shapes = (f"block {block[0]}x{block[1]}, warp {warp[0]}x{warp[1]}" for block in best for warp in (costs[block][1],))
    yield f"tensor, {{{' | '.join(shapes)}}}, stages {STAGES}"


def _sides(found: Patterns, products: Sequence[ReductionPattern]) -> Sides | None:
    """Return the rows and columns of all products, or None where they are not known, or differ."""
    sizes = {(found.iterations(p.outer), found.iterations(p.inner)) for p in products}
    match [*sizes]:
        case [(int(rows), int(columns))] if rows > 0 < columns:
            return rows, columns
    return None


def _dividing(sides: Sequence[int], extent: int) -> Iterator[int]:
    return (side for side in sides if not extent % side)


def _blocks() -> Iterator[Sides]:
    """Yield the rows and columns of threads that are whole warps."""
    every = product(range(2, TALLEST + 1), (8, 16, 20, 32, WIDEST))
    return (b for b in every if THREADS[0] <= b[0] * b[1] <= THREADS[1] and not b[0] * b[1] % 32)


def _over(block: Sides, part: Sides) -> Sides:
    return block[0] // part[0], block[1] // part[1]


def _resident(block: Sides, warp: Sides) -> int:
    """Return how many blocks a multiprocessor has at a time."""
    elements = block[0] * (STRIP + PADDING) + STRIP * (block[1] + PADDING)
    warps = block[0] * block[1] // (warp[0] * warp[1])
    return max(1, min(SHARED_BYTES // (STAGES * elements * 8), RESIDENT_WARPS // warps))


def _used(sides: Sides, block: Sides) -> float:
    """Return which part of what the blocks compute is needed."""
    done = [ceil(side / own) * own for side, own in zip(sides, block, strict=True)]
    return sides[0] * sides[1] / (done[0] * done[1])


def _cost(sides: Sides, each: Sides, block: Sides) -> float:
    """Return the work of blocks of so many threads, or warps, with so many elements ``each``, relative to the least.

    Of each product, a part of what shared memory gives is read, and of what is copied to it.
    """
    whole = each[0] * block[0], each[1] * block[1]
    read, copied = 1 / each[0] + 1 / each[1], 1 / whole[0] + 1 / whole[1]
    least = 4 if max(each) <= max(ROWS) else 16
    return (1 + read * least / 4 + copied * 8) / _used(sides, whole)
