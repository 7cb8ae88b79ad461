"""What the threads of a block do with tiles that overlap, as statements: for the text of kernels, and for predictions.

a_0, a_1          what a thread holds of the array a, in registers, one for each of its rows
a__tile[...]      what other threads read of it, in shared memory: of all rows, or of the first and last ones only
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from looptune.ir.nodes import Assign, Binary, Const, Expr, If, Load, Loop, Node, Stmt, Var
from looptune.ir.rewrite import rewrite, substitute
from looptune.ir.simplify import add, mul
from looptune.lower.passes.temporal_tiling import (
    POINT,
    Offset,
    PointwiseNest,
    TemporalTile,
    constant_offset,
    point,
    register,
    tile_in_time,
)
from looptune.lower.plan import Dimension, Kernel, Plan

ALONG: tuple[tuple[Dimension, ...], ...] = (("x",), ("y", "x"), ("z", "y", "x"))
"""The dimension of the block along each dimension of space, by how many there are."""


def allocate_tiles(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with what its threads hold of the tiles that they take through several steps as locals."""
    if kernel.time_tile is None:
        return kernel
    made, (loop,) = kernel.time_tile, kernel.body
    assert isinstance(loop, Loop), "the kernel is the loop over the steps"
    whole = replace(tile_in_time(loop, plan.codelet, tiles=False), reversed=made.reversed, spares=made.spares)
    return replace(kernel, time_tile=whole, locals=(*kernel.locals, *whole.registers(plan.codelet)))


@dataclass(frozen=True, slots=True)
class SharedRows:
    """What the threads read of each other of an array: these ``rows`` of each thread, element by element.

    ``before`` and ``count``: where the first element is, and how much room there is, so that no place lies outside.
    """

    name: str
    array: str
    dtype: str
    rows: tuple[int, ...]
    before: int
    count: int


@dataclass(frozen=True)
class ThreadRows:
    """What a thread has of each array, row by row, what it shares with others, and what it does with them."""

    kernel: Kernel
    plan: Plan

    @property
    def whole(self) -> TemporalTile:
        assert self.kernel.time_tile is not None, "the kernel has tiles that overlap"
        return self.kernel.time_tile

    @property
    def width(self) -> int:
        return self.whole.shape[-1]

    @cached_property
    def shared(self) -> dict[str, SharedRows]:
        """By the array."""
        used: dict[str, set[tuple[int, Offset]]] = {}
        for nest in self.whole.nests:
            for array, at in nest.uses(self.whole.source.keys()):
                for row in range(self.whole.rows):
                    if self.own(row, at) is None:
                        used.setdefault(array, set()).add((row, at))
        return {array: self.made(array, found) for array, found in used.items()}

    def made(self, array: str, used: set[tuple[int, Offset]]) -> SharedRows:
        rows = tuple(sorted({self.row(row, at)[1] for row, at in used}))
        least = min(0, *(self.step(rows, row, at) for row, at in used))
        most = max(0, *(self.step(rows, row, at) for row, at in used))
        x, y = self.kernel.block
        last = (y * len(rows) - 1) * self.width + self.width - 1 if len(self.whole.shape) > 1 else x * y - 1
        above = max(0, most - (len(rows) - 1) * self.width) if len(self.whole.shape) > 1 else most
        return SharedRows(f"{array}__tile", array, self.plan.array(array).dtype, rows, -least, 1 + last + above - least)

    def own(self, row: int, at: Offset) -> int | None:
        """Return the row of this thread that contains the element, or None if it belongs to another thread."""
        if len(at) == 1:
            return 0 if at[0] == 0 else None
        if any(at[1:]):
            return None
        there = row + at[0]
        if len(at) > 2:  # beyond the tile there is nothing
            return min(max(there, 0), self.whole.rows - 1)
        return there if 0 <= there < self.whole.rows else None

    def row(self, row: int, at: Offset) -> tuple[int, int]:
        """How many threads further along the outermost dimension the element is, and in which of their rows."""
        if len(at) == 1:
            return 0, 0
        if len(at) > 2:
            return 0, min(max(row + at[0], 0), self.whole.rows - 1)
        return divmod(row + at[0], self.whole.rows)

    def step(self, rows: Sequence[int], row: int, at: Offset) -> int:
        """How much further than the thread's first place the element is."""
        threads, there = self.row(row, at)
        threads += at[1] if len(at) > 2 else 0
        return (threads * len(rows) + rows.index(there)) * self.width + at[-1]

    def place(self, shared: SharedRows, further: int) -> Expr:
        """``further`` than the thread's first place."""
        x, y = (Var(thread_number(d)) for d in ("x", "y"))
        if len(self.whole.shape) == 1:
            return add(x, Const(shared.before + further))
        return add(add(mul(y, Const(len(shared.rows) * self.width)), x), Const(shared.before + further))

    def at(self, row: int) -> tuple[Expr, ...]:
        """Return the point in one of the thread's rows."""
        return outermost_coordinate(row), *(point(d) for d in range(1, len(self.whole.shape)))

    def tiled_arrays(self, array: str, row: int) -> Var:
        return Var(register(array, row), self.plan.array(array).dtype)

    def extents(self, array: str) -> tuple[tuple[Expr, Expr], ...]:
        return tuple((Const(0), n) for n in self.plan.array(array).shape if n is not None)

    def core(self, row: int, d: int) -> Iterator[Expr]:
        """Yield the condition that one of the thread's rows is in the core along a dimension.

        1 or 0 if that is known.
        """
        dims = ALONG[len(self.whole.shape) - 1]
        dim, n, (before, behind) = dims[d], self.whole.shape[d], self.whole.halo[d]
        if dim == "z":
            yield Const(int(before <= row < n - behind))
            return
        rowed = dim == "y" and d == 0
        at, row = (Var(ROW), row) if rowed else (Var(thread_number(dim)), 0)
        least, end = before - row, n - behind - row
        if least > 0:
            yield Binary(">=", at, Const(least))
        if end < n - (self.whole.rows - 1 if rowed else 0):
            yield Binary("<", at, Const(end))

    def compute(self, nest: PointwiseNest, row: int) -> tuple[Stmt, ...]:
        """Return the computation of the nest at the point.

        Elements are registers, or those of other threads in shared memory.
        """

        def rule(n: Node) -> Node | None:
            match n:
                case Load(array) if array in self.whole.source:
                    return self.element(row, n)
            return None

        placed = rewrite(rule, nest.body)
        return substitute(placed, {point(0).name: self.at(row)[0]})

    def element(self, row: int, load: Load) -> Expr:
        at = constant_offset(load)
        mine = self.own(row, at)
        if mine is not None:
            return Var(register(load.array, mine), load.dtype)
        shared = self.shared[load.array]
        return Load(shared.name, (self.place(shared, self.step(shared.rows, row, at)),), load.dtype)

    def publish(self, arrays: Iterable[str]) -> Iterator[Stmt]:
        """Yield the stores to shared memory of what other threads read."""
        for array in arrays:
            shared = self.shared[array]
            for k, row in enumerate(shared.rows):
                at = self.place(shared, k * self.width)
                yield Assign(Load(shared.name, (at,), shared.dtype), self.tiled_arrays(array, row))


def thread_number(dimension: str) -> str:
    """Return the number of the thread in its block."""
    return f"{dimension}__thread"


def first_point(dimension: int) -> Var:
    """Return the first point of the block's tile along a dimension."""
    return Var(f"first{dimension}{POINT}")


def outermost_coordinate(row: int) -> Var:
    """Return the outermost coordinate in a row, as a separate name for each row.

    Addresses are computed of non-negative values, and another row may be before the first element.
    """
    return Var(f"p0_{row}{POINT}")


def first_row_position(array: str) -> Var:
    """Return the position of the thread's first row in an array."""
    return Var(f"{array}__begins")


INSIDE = f"inside{POINT}"
ROW = "row__thread"
"""The first row of the thread in the tile."""


@dataclass(frozen=True, slots=True)
class InteriorBody:
    """What a block inside of all bounds does, as statements.

    ``positions`` are the values of names, from the first element of the block's core along each dimension and the
    thread's place in the block. After each of the ``groups``, in every iteration of ``loop``, the threads wait for each
    other.
    """

    positions: tuple[tuple[str, Expr], ...]
    loads: tuple[Stmt, ...]
    loop: Loop
    groups: tuple[tuple[Stmt, ...], ...]
    stores: tuple[Stmt, ...]


def core_position(kernel: Kernel, plan: Plan, starts: Sequence[Expr], threads: tuple[Expr, Expr]) -> InteriorBody:
    """Return the position in the core.

    ``starts`` of the block's core, ``threads``: the position of the thread along x and y.
    """
    made = ThreadRows(kernel, plan)
    whole = made.whole
    along = ALONG[len(whole.shape) - 1]
    places: list[tuple[str, Expr]] = [(thread_number("x"), threads[0]), (thread_number("y"), threads[1])]
    places.append((ROW, mul(threads[1], Const(whole.rows))))
    for d, (dim, start, (before, _)) in enumerate(zip(along, starts, whole.halo, strict=True)):
        mine = add(start, Const(-before))
        if dim != "z":
            mine = add(mine, Var(ROW if d == 0 and dim == "y" else thread_number(dim)))
        rows = range(whole.rows) if d == 0 else ()
        places += (
            [(outermost_coordinate(row).name, add(mine, Const(row))) for row in rows]
            if rows
            else [(point(d).name, mine)]
        )
    loads = [Assign(made.tiled_arrays(a, k), Load(source, made.at(k), plan.array(a).dtype))
             for a, source in whole.source.items() for k in range(whole.rows)]  # fmt: skip
    groups = tuple(
        (*(s for nest in group if nest.whole for k in range(whole.rows) for s in made.compute(nest, k)),
         *made.publish([a for a in made.shared if any(a in nest.writes for nest in group)]))
        for group in whole.groups
    )  # fmt: skip
    stores: list[Stmt] = []
    for row in range(whole.rows):
        row_stores = tuple(Assign(Load(t, made.at(row), plan.array(a).dtype), made.tiled_arrays(a, row))
                           for a, t in whole.target.items())  # fmt: skip
        asked = [c for d in range(len(along)) for c in made.core(row, d) if c != Const(1)]
        stores += (If(conjunction(asked), row_stores),) if asked else row_stores
    return InteriorBody(tuple(places), (*loads, *made.publish(tuple(made.shared))), whole.loop, groups, tuple(stores))


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """All of them."""
    return reduce(lambda a, b: Binary("&&", a, b), conditions)
