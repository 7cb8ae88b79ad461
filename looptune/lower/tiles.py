"""Tiles of arrays in the shared memory of a block, as ``passes.shared_memory`` makes them and backends write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from looptune.ir.nodes import Annotation, Const, Expr, Load, Loop, Stmt, Var
from looptune.ir.rewrite import walk_stmts
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
    """One copy of a thread to a tile: an element, or ``Tile.vector`` of them.

    ``skipped``: the thread copies the element, or vector, of the tile, in the order of its rows, with its own number
    after this many others. ``target`` is its index in the tile, and ``source`` that in the array, in terms of the
    variables ``copy_place``. ``within``: subscripts that have to be not negative, or below an extent; otherwise the
    tile gets zero.
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
    """A tile; ``origin`` are the subscripts of its first element, the same for all threads.

    ``shape`` is in elements; rows, or columns if it is ``transposed``, are ``pitch`` apart. ``vector``: the number of
    elements of a copy, either all or none of which are in the array. With several ``buffers`` the loop reads the one
    that ``prefetch_loop``, the loop around, selects. ``copies``: by the buffer to fill, the copies of each thread, or a
    single one, which is in a loop.
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
        """Return how many rows of the last dimension the tile has."""
        return prod(self.shape[:-1])

    @property
    def size(self) -> int:
        """Return the elements of shared memory of one buffer."""
        return (self.shape[-1] if self.transposed else self.rows) * self.pitch

    @property
    def row_copies(self) -> tuple[int, ...]:
        """Return the number of copies along each dimension."""
        return (*self.shape[:-1], self.shape[-1] // self.vector)

    @property
    def vector_width(self) -> int:
        """Return how many elements of the tile one access reads."""
        return WIDE // np.dtype(self.dtype).itemsize if self.transposed else self.vector

    def place(self, inside: Sequence[Expr]) -> Expr:
        """Return the index of an element in shared memory, from its subscripts in the tile."""
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

    ``body`` reads them, and its loops name the tiles to fill before them; ``all`` are those of the kernel's own loops,
    filled first. ``when``: the condition under which a thread has any work, as in a triangle.
    """

    body: tuple[Stmt, ...]
    all: tuple[Tile, ...]
    when: Expr | None = None

    @property
    def tiles(self) -> tuple[Tile, ...]:
        return (*self.all, *(t for f in walk_stmts(self.body) for t in filled_tiles(f)))


def shared_bytes(tiles: Iterable[Tile]) -> int:
    """Return the bytes of shared memory of a block; each tile begins at a multiple of 16 bytes."""
    return sum(-(-t.buffers * t.size * np.dtype(t.dtype).itemsize // WIDE) * WIDE for t in tiles)
