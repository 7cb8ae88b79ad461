"""What the blocks of a kernel do that compute a matrix product on tensor cores, for code generation and prediction.

copies        strips of the factors, several values of the sum's loop, are copied to shared memory in ``stages``
products      each warp adds the products of two strips to its sums, which its lanes hold in registers, step by step:
              a step is as many values of the sum's loop as one instruction multiplies
body          what a thread does with a sum that is complete, for one element of the block after the other, if the
              conditions ``within`` hold; ``updated``: elements that it changes in any case, which are read in advance
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from looptune.ir.nodes import Expr, Load, Loop, Stmt, Var
from looptune.lower.fragments import GROUPS, LANES, BlockShape
from looptune.lower.tiles import WIDE

TILES = "strips__tile"
"""The array in shared memory: the strips, and afterwards the sums."""
RATES = {"": 3, "tf32": 8, "bf16": 16}
"""Times as many operations as multiply-adds, at most, by what factors are rounded to: the H100's tensor cores do twice
as many on doubles, 2.5 times as many on floats with three products of TF32 each, 7.4 on TF32, 14.8 on bfloat16."""
ROW, COLUMN = Var("row__tile", "uint32"), Var("column__tile", "uint32")
"""Where in its block an element is."""


@dataclass(frozen=True, slots=True)
class StripOperand:
    """A factor: its strip is ``side`` rows, or columns, of ``strip`` values each.

    ``axis`` is the loop of the grid on whose variable ``value`` depends; ``load``: the element that ``value`` is, which
    is copied asynchronously, ``vector`` of them at once. ``along``: elements that are adjacent in memory, and in the
    strip, are those of one row; otherwise those of one value of the sum's loop. Rows of the strip are ``pitch`` apart,
    and it begins ``offset`` elements after its buffer. ``within``: what has to hold for the element to exist, besides
    that the loops have the iteration.
    """

    axis: Loop
    value: Expr
    load: Load | None
    side: int
    along: bool
    pitch: int
    offset: int
    vector: int = 1
    within: tuple[Expr, ...] = ()

    @property
    def side_stride(self) -> int:
        return self.pitch if self.along else 1

    @property
    def step_stride(self) -> int:
        return 1 if self.along else self.pitch


@dataclass(frozen=True, slots=True)
class WarpProduct:
    """A product of two strips, added to the sums number ``sum``."""

    sum: int
    left: StripOperand
    right: StripOperand


@dataclass(frozen=True, slots=True)
class WarpTiles:
    """The work of a block; ``loop`` is the header of the sum's loop, ``buffer`` the elements of one stage.

    ``split``: factors are floats, each the sum of two parts, whose products are added. ``rounded``: they are floats
    that are rounded to "tf32" or "bf16", and what is computed from them may differ by ``tolerance``, relative to an
    element and the median of its array.
    """

    shape: BlockShape
    stages: int
    dtype: str
    loop: Loop
    products: tuple[WarpProduct, ...]
    buffer: int
    sums: int
    body: tuple[Stmt, ...]
    within: tuple[Expr, ...] = ()
    updated: tuple[Load, ...] = ()
    split: bool = False
    rounded: str = ""
    tolerance: float = 0.0

    @property
    def steps(self) -> tuple[tuple[WarpProduct, int], ...]:
        """Return the steps of a strip, each with the first of its values."""
        return tuple((p, k) for p in self.products for k in range(0, self.shape.strip, self.shape.fragment.steps))

    def by_matrices(self, operand: StripOperand, right: bool) -> bool:
        """Return whether one instruction loads four matrices of 8 x 4 words of a factor, whose rows are in memory.

        Two fragments of the right factor are four matrices, or one of the left factor.
        """
        whole = self.shape.fragment.steps == GROUPS and self.dtype == "float32" and operand.along
        return whole and (self.shape.wide_fragments % 2 == 0 if right else self.shape.fragment.rows == 2 * GROUPS)

    @property
    def threads(self) -> int:
        return self.shape.warps * LANES

    @property
    def sum_pitch(self) -> int:
        """Return how far rows of sums are apart in shared memory."""
        return self.shape.columns + WIDE // np.dtype(self.dtype).itemsize

    @property
    def elements(self) -> int:
        """Return the elements of shared memory: of all stages, or of the sums, which replace them."""
        return max(self.stages * self.buffer, self.sums * self.shape.rows * self.sum_pitch)

    @property
    def shared_bytes(self) -> int:
        return -(-self.elements * np.dtype(self.dtype).itemsize // WIDE) * WIDE

    @property
    def operands(self) -> tuple[StripOperand, ...]:
        return tuple(dict.fromkeys(o for p in self.products for o in (p.left, p.right)))

    @property
    def vector_arrays(self) -> tuple[str, ...]:
        """Return the arrays that are copied 16 bytes at a time."""
        return tuple(o.load.array for o in self.operands if o.load is not None and o.vector > 1)
