"""Elements that threads keep through all iterations of a loop, as ``passes.resident_tiling`` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal

from looptune.ir.nodes import Codelet, Expr, Load, Local, Loop, Stmt, Var
from looptune.lower.temporal_tiles import ALONG, KEPT, POINT, Cell
from looptune.schedule.directives.resident import OwnedElements

RESIDENT = OwnedElements.word
"""The directive's name in messages."""
FINAL = f"final{KEPT}"
"""The variable that says whether all iterations are done."""
NOW = Var(f"now{POINT}")
"""The iteration of the loop, as an int."""
FLAT_THREAD = Var(f"thread{POINT}")
"""The number of the thread in its block, whatever the block's shape."""
HELD = f"held{KEPT}"
"""What the names of arrays in shared memory end with that have a thread's own elements."""


def operand_name(number: int, element: int | None = None) -> str:
    """Return the array in shared memory with what several threads read, or the register with an element of it."""
    return f"operand{number}{'' if element is None else f'_{element}'}{KEPT}"


def home(dimension: int) -> Var:
    """Return the position of the first element of the thread along a dimension."""
    return Var(f"home{dimension}{POINT}")


def corner(dimension: int) -> Var:
    """Return the position of the first element of the block along a dimension."""
    return Var(f"corner{dimension}{POINT}")


def stride(dimension: int) -> Var:
    """Return how far the elements of a thread are apart along a dimension, if they are distributed cyclically."""
    return Var(f"stride{dimension}{POINT}")


def place(dimension: int) -> Var:
    """Return the name of a coordinate of an element."""
    return Var(f"p{dimension}{POINT}")


def owned_elements(loop: Loop) -> OwnedElements | None:
    """Return what a directive asks of the loop, or None where none does."""
    return loop.annotation(OwnedElements)


@dataclass(frozen=True, slots=True)
class OwnedStatement:
    """An assignment at the place ``p`` that it writes: ``value`` and ``conditions`` are of ``place(d)`` and the loop.

    In ``value``, an element at the place itself is a load with the subscripts ``place(0)``, ``place(1)``; every other
    element has its value from before the iteration.
    """

    array: str
    dtype: str
    value: Expr
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ExchangedElements:
    """The elements of an array that other threads read in an iteration: those where all ``conditions`` hold."""

    array: str
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ResidentTile:
    """The elements that a thread keeps through all iterations of ``loop``.

    ``spares``: each array that is written, with the array that takes turns with it: the iterations read one and write
    the other. ``extents`` of space, along each dimension; ``threads`` of a block along each dimension. ``shared`` of
    the thread's rows are in shared memory.
    """

    loop: Loop
    spares: tuple[tuple[str, str], ...]
    statements: tuple[OwnedStatement, ...]
    exchanged: tuple[ExchangedElements, ...]
    extents: tuple[Expr, ...]
    threads: tuple[int, ...]
    rows: int
    columns: int
    shared: int
    cyclic: bool

    @property
    def arrays(self) -> tuple[str, ...]:
        """Return the arrays that are kept."""
        return tuple(a for a, _ in self.spares)

    @property
    def each(self) -> tuple[int, ...]:
        """Return how many elements a thread has along each dimension."""
        return (self.rows, self.columns) if len(self.extents) == 2 else (self.columns,)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return how many elements a block has along each dimension."""
        return tuple(a * b for a, b in zip(self.threads, self.each, strict=True))

    def element_stride(self, d: int) -> int:
        """Return how far the elements of a thread are apart along a dimension, among those of a block.

        Lanes of a warp are neighbours along the innermost dimension. A thread's rows are neighbours, so that conditions
        on rows mostly concern whole warps; rows that are distributed cyclically are not neighbours.
        """
        return 1 if self.in_row(d) else self.threads[d]

    def thread_stride(self, d: int) -> int:
        """Return how far the first elements of two threads are apart along a dimension."""
        return self.each[d] if self.in_row(d) else 1

    def in_row(self, d: int) -> bool:
        """Return whether the elements of a thread are neighbours along a dimension."""
        return d < len(self.extents) - 1 and not self.cyclic

    def strides(self, d: int, blocks: int) -> tuple[int, int, int]:
        """Return the distances of blocks, threads, and elements of a thread along a dimension."""
        if self.cyclic:
            return self.threads[d], 1, self.threads[d] * blocks
        return self.shape[d], self.thread_stride(d), self.element_stride(d)

    @property
    def along(self) -> tuple[Literal["x", "y", "z"], ...]:
        """Return the dimension of the block along each dimension of space."""
        return ALONG[len(self.extents) - 1]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the elements of each array that a thread has, row by row."""
        return tuple(product(range(self.rows), range(self.columns)))

    def register(self, array: str, cell: Cell) -> str | None:
        """Return the register that holds one of the thread's elements; None for one in shared memory."""
        return None if cell[0] >= self.rows - self.shared else f"{array}_{cell[0]}_{cell[1]}{KEPT}"

    def registers(self, codelet: Codelet) -> tuple[Local, ...]:
        """Return the registers of each thread for the arrays."""
        types = {v.name: v.dtype for v in (*codelet.params, *codelet.locals)}
        found = ((a, self.register(a, cell)) for a in self.arrays for cell in self.cells)
        return tuple(Local(name, types[a]) for a, name in found if name is not None)

    def shared_name(self, array: str) -> str:
        """Return the array in shared memory that has the elements of a thread's last rows."""
        return f"{array}_{HELD}"

    @property
    def block_threads(self) -> int:
        """Return the threads of a block."""
        return prod(self.threads)


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array in shared memory."""

    name: str
    dtype: str
    count: int


@dataclass(frozen=True, slots=True)
class ResidentBody:
    """What a thread does with its elements.

    It loads them before the first iteration (``load``). In each iteration the threads of a block put what they read of
    others into shared memory (``gather``), and after a barrier execute ``compute`` and ``exchange``: it stores what
    other threads read in the next iteration. ``store`` stores all elements. Blocks that have several tiles load and
    store them in each iteration. Loads are from the array of the iteration, stores to its spare.
    """

    shared: tuple[SharedArray, ...]
    load: tuple[Stmt, ...]
    gather: tuple[Stmt, ...]
    compute: tuple[Stmt, ...]
    exchange: tuple[Stmt, ...]
    store: tuple[Stmt, ...]


def is_own(load: Load) -> bool:
    """Return whether an element of an ``OwnedStatement`` is at the place that it writes."""
    return load.index == tuple(place(d) for d in range(len(load.index)))
