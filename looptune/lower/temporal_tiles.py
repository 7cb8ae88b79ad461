"""Tiles that blocks compute through several steps of a loop, as ``passes.temporal_tiling`` makes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Codelet, Const, Expr, Load, Local, Loop, Stmt, Var
from looptune.ir.rewrite import walk, walk_stmts
from looptune.schedule.directives.overlap import TimeTile

POINT = "__point"
"""What the names of a point's coordinates end with."""
Offset = tuple[int, ...]
"""How far an element lies from the point, along each dimension."""
Bounds = tuple[Expr, Expr]
"""The first of some places along a dimension, and the end of them."""


def point(dimension: int) -> Var:
    """Return the name of a coordinate."""
    return Var(f"p{dimension}{POINT}")


Cell = tuple[int, int]
"""One of a thread's elements of each array: its row and its column among them."""
KEPT = "__kept"
"""What the names of registers that hold elements end with."""


@dataclass(frozen=True, slots=True)
class PointwiseNest:
    """What a nest computes at a point within ``bounds``.

    In ``body``, the arrays in tiles have the constant ``Offset`` of an element as subscripts. ``whole``: a loop runs
    along every dimension.
    """

    bounds: tuple[Bounds, ...]
    body: tuple[Stmt, ...]
    whole: bool

    def uses(self, arrays: Collection[str]) -> Iterator[tuple[str, Offset]]:
        """Yield the elements that the nest uses."""
        for n in walk(self.body):
            if isinstance(n, Load) and n.array in arrays:
                yield n.array, constant_offset(n)

    @property
    def writes(self) -> frozenset[str]:
        return frozenset(t.array for t in stored_elements(self.body))


@dataclass(frozen=True, slots=True)
class TemporalTile:
    """One launch of several steps of ``loop``.

    ``spares``: each array in tiles, with the array that the next launch reads instead. ``reversed``: this launch reads
    the spare arrays. ``groups`` of nests: there is no barrier within a group. ``extents`` of space, along each
    dimension; ``halo``: how many elements at the two edges of a tile are wrong after the last step; ``shape`` of a
    tile, in elements; ``rows`` and ``columns``: how many consecutive elements along the outermost and the innermost
    dimension a thread has. ``resident``: a block that has one tile in all launches keeps it, see ``exchanged``.
    """

    loop: Loop
    spares: tuple[tuple[str, str], ...]
    groups: tuple[tuple[PointwiseNest, ...], ...]
    extents: tuple[Expr, ...]
    halo: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    rows: int
    columns: int = 1
    reversed: bool = False
    resident: bool = False

    @property
    def core(self) -> tuple[int, ...]:
        return tuple(n - a - b for n, (a, b) in zip(self.shape, self.halo, strict=True))

    @property
    def nests(self) -> Iterator[PointwiseNest]:
        return (nest for group in self.groups for nest in group)

    @property
    def untiled(self) -> TemporalTile:
        """Return the same launch without tiles, in place."""
        return replace(self, spares=tuple((array, array) for array, _ in self.spares))

    @property
    def fixed(self) -> bool:
        """Return whether the bounds of every nest are the same in all steps and independent of the other dimensions."""
        moving = {self.loop.var, *(point(d).name for d in range(len(self.shape)))}
        return not any(names_in(nest.bounds) & moving for nest in self.nests)

    def registers(self, codelet: Codelet) -> tuple[Local, ...]:
        """Return the registers of each thread for the arrays."""
        types = {v.name: v.dtype for v in (*codelet.params, *codelet.locals)}
        return tuple(Local(self.register(a, cell), types[a]) for a, _ in self.spares for cell in self.cells)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the elements of each array that a thread has, row by row."""
        return tuple(product(range(self.rows), range(self.columns)))

    def register(self, array: str, cell: Cell) -> str:
        """Return the name of the register that holds one of the thread's elements of an array."""
        row, column = cell
        return f"{array}_{row}_{column}{KEPT}" if self.columns > 1 else f"{array}_{row}{KEPT}"

    @property
    def exchanged(self) -> tuple[str, ...]:
        """Return the arrays of which a block that keeps its tile reads the halo again before each launch.

        An array needs no exchange if each step first computes it anew from other arrays, wherever it is written.
        """
        return tuple(a for a, _ in self.spares if not self._renewed(a))

    def _renewed(self, array: str) -> bool:
        found = (nest for nest in self.nests if any(nest.uses((array,))))
        first, *others = found
        plain = [s for s in first.body if isinstance(s, Assign) and s.target in tuple(stored_elements((s,)))]
        own = any(isinstance(s.target, Load) and s.target.array == array for s in plain)
        alone = len(tuple(first.uses((array,)))) == 1 and first.whole and self.fixed
        return own and alone and all(nest.bounds == first.bounds for nest in others if array in nest.writes)

    @property
    def source(self) -> Mapping[str, str]:
        """Return the array from which the launch reads each array."""
        return {a: b if self.reversed else a for a, b in self.spares}

    @property
    def target(self) -> Mapping[str, str]:
        """Return the array to which the launch writes each array."""
        return {a: a if self.reversed else b for a, b in self.spares}


def time_tile(loop: Loop) -> TimeTile | None:
    """Return what a directive asks of the launches of the loop, or None where none does."""
    return loop.annotation(TimeTile)


def steps_per_launch(loop: Loop) -> int:
    """Return how many iterations of the loop are one launch, 0 if no directive says so."""
    said = time_tile(loop)
    return 0 if said is None else said.steps


def constant_offset(load: Load) -> Offset:
    """Return the constant subscripts of the element."""
    return tuple(int(e.value) for e in load.index if isinstance(e, Const))


def stored_elements(body: tuple[Stmt, ...]) -> Iterator[Load]:
    """Yield the elements that the statements write."""
    return (s.target for s in walk_stmts(body) if isinstance(s, Assign) and isinstance(s.target, Load))


OVERLAP = TimeTile.word
"""The directive's name in messages."""
ALONG: tuple[tuple[Literal["x", "y", "z"], ...], ...] = (("x",), ("y", "x"), ("z", "y", "x"))
"""The dimension of the block along each dimension of space, by how many there are."""
INSIDE = f"inside{POINT}"
"""The variable that says whether a block's tile lies within all bounds."""
FRESH, LAST = f"fresh{POINT}", f"last{POINT}"
"""The variables that say whether a block that may keep its tile loads all of it, and stores all of its core."""
ROW = "row__thread"
"""The first row of the thread in the tile."""


def thread_number(dimension: str) -> str:
    """Return the variable that holds the number of the thread in its block."""
    return f"{dimension}__thread"


def first_point(dimension: int) -> Var:
    """Return the first point of the block's tile along a dimension."""
    return Var(f"first{dimension}{POINT}")


def outermost_coordinate(row: int) -> Var:
    """Return the outermost coordinate in a row, as a separate name for each row.

    Addresses are computed of non-negative values, and another row may be before the first element.
    """
    return Var(f"p0_{row}{POINT}")


def column_coordinate(dimension: int, column: int) -> Var:
    """Return the innermost coordinate in a column of a thread that has several."""
    return Var(f"p{dimension}_{column}{POINT}")


@dataclass(frozen=True, slots=True)
class SharedCells:
    """The elements of an array that threads read from each other: these ``cells`` of each thread.

    ``before`` is the index of the first element, and ``count`` the number of elements allocated, so that no index is
    outside.
    """

    name: str
    array: str
    dtype: str
    cells: tuple[Cell, ...]
    before: int
    count: int


@dataclass(frozen=True, slots=True)
class LaneElement:
    """An element that the lane ``by`` further holds in the register ``source``; it comes to the register ``target``."""

    target: str
    source: str
    by: int
    dtype: str

    @property
    def side(self) -> str:
        """Return in words where the lane is."""
        return "before" if self.by < 0 else "behind"


@dataclass(frozen=True, slots=True)
class StepGroup:
    """What threads do in one step between two barriers.

    They compute new elements in registers, with ``lanes`` of the neighbours in their warp. ``waits``: they then wait
    until no thread reads the old ones; ``publish`` stores the new elements that other threads read in shared memory.
    """

    compute: tuple[Stmt, ...]
    waits: bool
    publish: tuple[Stmt, ...]
    lanes: tuple[LaneElement, ...] = ()


@dataclass(frozen=True, slots=True)
class TileSteps:
    """A tile loaded into registers, ``publish``ed in shared memory, taken through the steps, and stored."""

    load: tuple[Stmt, ...]
    publish: tuple[Stmt, ...]
    groups: tuple[StepGroup, ...]
    store: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class InteriorBody:
    """What a block inside all bounds does, with arrays as they are declared.

    ``positions`` are the values of names, computed from the first element of the block's core along each dimension and
    the thread's number in the block. After each of the ``groups``, in every iteration of ``loop``, the threads wait for
    each other.
    """

    positions: tuple[tuple[str, Expr], ...]
    loads: tuple[Stmt, ...]
    loop: Loop
    groups: tuple[tuple[Stmt, ...], ...]
    stores: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class TemporalBody:
    """What the threads of a block do with overlapping tiles.

    ``shared``: arrays in shared memory. ``inside``: the condition that a block lies within all bounds; such blocks
    execute ``interior``, which evaluates no bound, and others ``anywhere``. Both are None if that differs from step to
    step. ``interior_body``: the same as the interior, for the cost model.
    """

    shared: tuple[SharedCells, ...]
    inside: Expr | None
    interior: TileSteps | None
    anywhere: TileSteps
    interior_body: InteriorBody
