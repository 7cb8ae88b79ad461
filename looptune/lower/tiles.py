"""Tiles of arrays in the shared memory of a block, as ``passes.shared_memory`` makes them and backends write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from looptune.ir.nodes import Annotation, Const, Expr, Load, Loop, Stmt, Var
from looptune.ir.rewrite import walk
from looptune.ir.simplify import add, mul

FIRST, THREAD = "__first", "__thread"
"""What names end with: the value of a grid's variable in the first thread of the block, and the thread's distance."""
BUFFER, AHEAD = "__buffer", "__ahead"
"""The same: which buffer of its tiles an iteration reads, and the iteration whose tiles are filled."""
NEXT = "__next"
"""The same: the buffer that is filled next."""
ONCE = "once__tile"
"""The variable of a loop of one iteration, before which tiles are filled: it stands for what is in it."""
WIDE = 16
"""Bytes of the widest load that a thread makes."""


@dataclass(frozen=True, slots=True)
class TileCopy:
    """What one thread copies to a tile at once: an element, or ``Tile.vector`` of them.

    ``skipped``: of the elements, or vectors, of the tile in the order of its rows, the thread takes the one with its
    own number after so many others. ``target``: its place in the tile, and ``source`` in the array, by the variables
    ``copy_place``. ``within``: subscripts to be compared: they are not negative, or below an extent; where one is not,
    the tile has zero.
    """

    skipped: int
    target: Expr
    source: Load
    within: tuple[tuple[Expr, Expr | None], ...]


def copy_place(dimension: int) -> Var:
    """Return the variable that holds a subscript in the tile of what is copied."""
    return Var(f"place{dimension}__tile")


@dataclass(frozen=True, slots=True)
class Tile:
    """``origin``: the subscripts of its first element, the same for all threads.

    ``shape`` in elements, rows ``pitch`` apart, or columns where it is ``transposed``; ``vector``: so many elements are
    copied at once, and where one of them is in the array all are. Of several ``buffers`` the loop reads the one that
    ``prefetch_loop``, the loop around, says. ``copies``: by the buffer that is filled, what each thread copies one
    after the other, or in a loop where it is but one copy.
    """

    name: str
    array: str
    dtype: str
    origin: tuple[Expr, ...]
    shape: tuple[int, ...]
    pitch: int
    vector: int = 1
    buffers: int = 1
    prefetch_loop: str = ""
    transposed: bool = False
    copies: tuple[tuple[TileCopy, ...], ...] = ()

    @property
    def rows(self) -> int:
        """How many rows of the last dimension it has."""
        return prod(self.shape[:-1])

    @property
    def size(self) -> int:
        """Elements of shared memory, of one buffer."""
        return (self.shape[-1] if self.transposed else self.rows) * self.pitch

    @property
    def row_copies(self) -> tuple[int, ...]:
        """How many copies there are along each dimension."""
        return (*self.shape[:-1], self.shape[-1] // self.vector)

    @property
    def vector_width(self) -> int:
        """So many of its elements are read at once."""
        return WIDE // np.dtype(self.dtype).itemsize if self.transposed else self.vector

    def place(self, inside: Sequence[Expr]) -> Expr:
        """Where one element is, by its subscripts in the tile."""
        row: Expr = Const(0)
        for e, n in zip(inside[:-1], self.shape[:-1], strict=True):
            row = add(mul(row, Const(n)), e)
        major, minor = (inside[-1], row) if self.transposed else (row, inside[-1])
        return add(mul(major, Const(self.pitch)), minor)


@dataclass(frozen=True, slots=True)
class TileFill(Annotation):
    """The tiles that a block fills before its threads run the loop."""

    word: ClassVar[str] = "fill"
    tiles: tuple[Tile, ...]

    def pragma(self) -> str:
        return ""


def filled_tiles(stmt: Stmt) -> tuple[Tile, ...]:
    """Return the tiles that a block fills before this statement, a loop; none where it is no such loop."""
    said = stmt.annotation(TileFill) if isinstance(stmt, Loop) else None
    return () if said is None else said.tiles


@dataclass(frozen=True, slots=True)
class SharedTiles:
    """What a kernel's threads do with tiles.

    ``body`` reads them, and its loops say which are filled before them; ``all`` are those of the kernel's own loops, to
    be filled first. ``when``: the condition under which a thread has anything to do, as in a triangle.
    """

    body: tuple[Stmt, ...]
    all: tuple[Tile, ...]
    when: Expr | None = None

    @property
    def tiles(self) -> tuple[Tile, ...]:
        return (*self.all, *(t for f in walk(self.body) if isinstance(f, Loop) for t in filled_tiles(f)))


def shared_bytes(tiles: Iterable[Tile]) -> int:
    """Return the bytes of shared memory of a block; each tile begins at a multiple of 16 bytes."""
    return sum(-(-t.buffers * t.size * np.dtype(t.dtype).itemsize // WIDE) * WIDE for t in tiles)
