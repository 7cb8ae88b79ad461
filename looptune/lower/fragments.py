"""Fragments: which elements of a small matrix product each of the 32 lanes of a warp holds for a tensor core.

An instruction of the shape m x n x k adds a product of m x k and k x n elements to m x n sums. Lane ``4 * g + q``, with
g from 0 to 7 and q from 0 to 3, holds (PTX ISA, "Matrix Fragments for mma", .f64 and .tf32)

    of the left factor   in register r    row g + 8 * (r mod m/8)          step q + 4 * (r div m/8)
    of the right factor  in register r    step q + 4 * r                   column g
    of the sums          in register r    row g + 8 * (r div 2)            column 2 * q + r mod 2

These are affine maps of g, q and the digits of r; ``checked`` enumerates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

LANES, GROUPS, QUADS = 32, 8, 4
"""Lanes of a warp: eight groups of four."""
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Fragment:
    """One shape of the instruction: ``rows`` x ``columns`` sums of products of ``steps`` factors."""

    rows: int
    columns: int
    steps: int

    @property
    def capability(self) -> int:
        """Return the compute capability, times ten, of the first devices that have it in double precision."""
        return 80 if self.rows == GROUPS else 90

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.columns}x{self.steps}"

    @property
    def left_registers(self) -> int:
        return self.rows * self.steps // LANES

    @property
    def right_registers(self) -> int:
        return self.steps * self.columns // LANES

    @property
    def sum_registers(self) -> int:
        return self.rows * self.columns // LANES

    def left(self, lane: int, register: int) -> Place:
        """Return row and step of what a lane holds of the left factor."""
        upper = self.rows // GROUPS
        return lane // QUADS + GROUPS * (register % upper), lane % QUADS + QUADS * (register // upper)

    def right(self, lane: int, register: int) -> Place:
        """Return step and column of what a lane holds of the right factor."""
        return lane % QUADS + QUADS * register, lane // QUADS

    def sum(self, lane: int, register: int) -> Place:
        """Return row and column of a sum that a lane holds."""
        return lane // QUADS + GROUPS * (register // 2), 2 * (lane % QUADS) + register % 2


@dataclass(frozen=True, slots=True)
class BlockShape:
    """How a block is divided: ``rows`` x ``columns`` sums into warps, a warp into instructions, ``strip`` steps each.

    Warp w has the part (w div wide, w mod wide) of the block, where ``wide`` parts are beside each other.
    """

    fragment: Fragment
    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    strip: int

    @property
    def wide(self) -> int:
        return self.columns // self.warp_columns

    @property
    def warps(self) -> int:
        return self.rows // self.warp_rows * self.wide

    @property
    def high_fragments(self) -> int:
        return self.warp_rows // self.fragment.rows

    @property
    def wide_fragments(self) -> int:
        return self.warp_columns // self.fragment.columns

    @property
    def sums(self) -> int:
        """Return how many sums a lane holds."""
        return self.high_fragments * self.wide_fragments * self.fragment.sum_registers

    def places(self, warp: int) -> Iterator[tuple[int, int, int]]:
        """Yield lane, row and column of each sum of a warp, by lane in the order in which it holds them."""
        row, column = warp // self.wide * self.warp_rows, warp % self.wide * self.warp_columns
        held = product(range(self.high_fragments), range(self.wide_fragments), range(self.fragment.sum_registers))
        for (high, wide, register), lane in product(held, range(LANES)):
            r, c = self.fragment.sum(lane, register)
            yield lane, row + high * self.fragment.rows + r, column + wide * self.fragment.columns + c


@cache
def checked(shape: BlockShape) -> bool:
    """Tell whether each sum of a block belongs to one lane, and each of its terms is added once.

    The maps are finite, so they are enumerated: the instruction multiplies each element of the left factor in its row
    with each of the right one at the same step, if lanes hold every element of both once.
    """
    f = shape.fragment
    whole = (
        (f.left, f.left_registers, f.rows, f.steps),
        (f.right, f.right_registers, f.steps, f.columns),
        (f.sum, f.sum_registers, f.rows, f.columns),
    )
    once = all(_bijective(held, registers, a, b) for held, registers, a, b in whole)
    places = [place[1:] for warp in range(shape.warps) for place in shape.places(warp)]
    every = sorted(places) == list(product(range(shape.rows), range(shape.columns)))
    return once and every and shape.strip % f.steps == 0


def _bijective(held: Callable[[int, int], Place], registers: int, a: int, b: int) -> bool:
    """Tell whether lanes and registers correspond one to one to ``a`` x ``b`` elements."""
    found = sorted(held(lane, register) for lane, register in product(range(LANES), range(registers)))
    return found == list(product(range(a), range(b)))
