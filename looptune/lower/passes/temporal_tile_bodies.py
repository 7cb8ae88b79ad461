"""The statements of a block that computes overlapping tiles through several steps, for code generation and prediction.

a_0, a_1          the elements of the array a that a thread holds, in registers, one for each of its rows
a__tile[...]      the elements that other threads read, in shared memory: of all rows, or of the first and last only
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Binary, Const, Expr, If, Load, Loop, Node, Stmt, Var
from looptune.ir.rewrite import rewrite, substitute
from looptune.ir.simplify import add, mul
from looptune.lower.passes.flat_arrays import flat_index
from looptune.lower.passes.temporal_tiling import tile_in_time
from looptune.lower.plan import Kernel, Plan
from looptune.lower.temporal_tiles import (
    ALONG,
    ROW,
    Bounds,
    InteriorBody,
    Offset,
    PointwiseNest,
    SharedRows,
    StepGroup,
    TemporalBody,
    TemporalTile,
    TileSteps,
    constant_offset,
    first_point,
    outermost_coordinate,
    point,
    register,
    thread_number,
)
from looptune.lower.tiles import FIRST


def allocate_tiles(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with what its threads hold of the tiles that they take through several steps as locals."""
    if kernel.time_tile is None:
        return kernel
    made, (loop,) = kernel.time_tile, kernel.body
    assert isinstance(loop, Loop), "the kernel is the loop over the steps"
    whole = replace(tile_in_time(loop, plan.codelet, tiles=False), reversed=made.reversed, spares=made.spares)
    return replace(kernel, time_tile=whole, locals=(*kernel.locals, *whole.registers(plan.codelet)))


@dataclass(frozen=True)
class ThreadRows:
    """The elements of each array that a thread holds, row by row, and those that it shares with other threads."""

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
        """Return, for each array, the rows that threads read from each other."""
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
        """Return how many threads further along the outermost dimension an element is, and in which of their rows."""
        if len(at) == 1:
            return 0, 0
        if len(at) > 2:
            return 0, min(max(row + at[0], 0), self.whole.rows - 1)
        return divmod(row + at[0], self.whole.rows)

    def step(self, rows: Sequence[int], row: int, at: Offset) -> int:
        """Return the distance of an element from the thread's first place in shared memory, in elements."""
        threads, there = self.row(row, at)
        threads += at[1] if len(at) > 2 else 0
        return (threads * len(rows) + rows.index(there)) * self.width + at[-1]

    def place(self, shared: SharedRows, further: int) -> Expr:
        """Return the index in shared memory that is ``further`` elements than the thread's first place."""
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


def first_row_position(array: str) -> Var:
    """Return the position of the thread's first row in an array."""
    return Var(f"{array}__begins")


def make_bodies(kernel: Kernel, plan: Plan) -> Kernel:
    """Return a kernel that takes several steps in tiles of its own with what its threads do; others as they are."""
    if kernel.time_tile is None:
        return kernel
    made = _Bodies(ThreadRows(kernel, plan))
    begins = frozenset(first_row_position(array).name for pair in kernel.time_tile.spares for array in pair)
    return replace(kernel, time_body=made.body(), positions=kernel.positions | begins)


Each = Callable[[int], tuple[Stmt, ...]]
"""The statements for one of a thread's rows."""


@dataclass(frozen=True, slots=True)
class _Bodies:
    rows: ThreadRows

    @property
    def whole(self) -> TemporalTile:
        return self.rows.whole

    def body(self) -> TemporalBody:
        inside = conjunction(tuple(self.inside())) if self.whole.fixed else None
        interior = self.steps(asking=False) if self.whole.fixed else None
        shared = tuple(self.rows.shared.values())
        return TemporalBody(shared, inside, interior, self.steps(asking=True), interior_body(self.rows))

    def steps(self, *, asking: bool) -> TileSteps:
        """Return what a block does; without ``asking`` one that lies inside all bounds."""
        load, store = (self.loads, self.stores) if asking else (self.all_loads, self.all_stores)
        publish = tuple(self.rows.publish(self.rows.shared))
        return TileSteps(tuple(load()), publish, tuple(self.groups(asking=asking)), tuple(store()))

    def loads(self) -> Iterator[Stmt]:
        """Zero where the array has no such element."""
        rows = self.rows
        for array, source in self.whole.source.items():
            dtype = rows.plan.array(array).dtype
            yield from (Assign(rows.tiled_arrays(array, row), Const(0, dtype)) for row in range(self.whole.rows))

            def load(row: int, array: str = array, source: str = source, dtype: str = dtype) -> tuple[Stmt, ...]:
                return (Assign(rows.tiled_arrays(array, row), Load(source, rows.at(row), dtype)),)

            yield from self.where(rows.extents(array), load)

    def stores(self) -> Iterator[Stmt]:
        """Yield the stores of what is in the block's core."""
        rows = self.rows
        for array, target in self.whole.target.items():
            dtype = rows.plan.array(array).dtype

            def store(row: int, array: str = array, target: str = target, dtype: str = dtype) -> tuple[Stmt, ...]:
                return (Assign(Load(target, rows.at(row), dtype), rows.tiled_arrays(array, row)),)

            yield from self.where(rows.extents(array), store, core=True)

    def all_loads(self) -> Iterator[Stmt]:
        for array, source in self.whole.source.items():
            yield self.first_row_variables(source)
            for row in range(self.whole.rows):
                yield Assign(self.rows.tiled_arrays(array, row), self.row_offset(array, source, row))

    def all_stores(self) -> Iterator[Stmt]:
        """Yield the rows of all arrays in turn, for they are in the core together."""
        targets = self.whole.target.items()
        yield from (self.first_row_variables(target) for _, target in targets)

        def store(row: int) -> tuple[Stmt, ...]:
            return tuple(Assign(self.row_offset(a, t, row), self.rows.tiled_arrays(a, row)) for a, t in targets)

        yield from self.where((), store, core=True)

    def first_row_variables(self, array: str) -> Assign:
        """Return the place of the thread's first row in a variable, from which the others are so many rows further."""
        element = Load(array, self.rows.at(0), self.rows.plan.array(array).dtype)
        return Assign(first_row_position(array), flat_index(element, self.rows.plan))

    def row_offset(self, array: str, there: str, row: int) -> Load:
        held = self.rows.plan.array(array)
        length: Expr = Const(1)
        for n in held.shape[1:]:
            length = length if n is None else mul(length, n)
        return Load(there, (add(first_row_position(there), mul(Const(row), length)),), held.dtype)

    def where(self, bounds: Sequence[Bounds], each: Each, *, core: bool = False) -> tuple[Stmt, ...]:
        """Return ``each`` row of the thread that is within the bounds and in the ``core``, under its conditions.

        The core begins within the bounds; conditions that all rows share are evaluated once.
        """
        along = range(len(self.whole.shape))

        def asked(row: int, d: int) -> tuple[Expr, ...]:
            mine = tuple(self.rows.core(row, d)) if core else ()
            if not bounds:
                return mine
            p, (lo, hi) = self.rows.at(row)[d], self.moved(bounds, row)[d]
            return (*mine, Binary("<", p, hi)) if core else (Binary(">=", p, lo), Binary("<", p, hi))

        same = (d for d in along[1:] if point(0).name not in names_in(tuple(bounds[d : d + 1])))
        common = tuple(c for d in same for c in asked(0, d))
        out: list[Stmt] = []
        for row in range(self.whole.rows):
            own = tuple(c for d in along for c in asked(row, d) if c not in common and c != Const(1))
            if Const(0) not in own:
                out += _under(own, each(row))
        return _under(common, tuple(out))

    def moved(self, bounds: Sequence[Bounds], row: int) -> tuple[Bounds, ...]:
        env = {point(0).name: outermost_coordinate(row)}
        return tuple((substitute(lo, env), substitute(hi, env)) for lo, hi in bounds)

    def inside(self) -> Iterator[Expr]:
        """Yield the conditions that the block's tile is inside.

        It is inside all arrays and every nest that has all dimensions, and outside the others.
        """
        ends = [(first_point(d), add(first_point(d), Const(n))) for d, n in enumerate(self.whole.shape)]
        asked: list[Expr] = [Binary(">=", a, Const(0)) for a, _ in ends]
        for array in self.whole.source:
            asked += [Binary("<=", b, n) for (_, b), (_, n) in zip(ends, self.rows.extents(array), strict=True)]
        for nest in self.whole.nests:
            if nest.whole:
                asked += [Binary(">=", a, lo) for (a, _), (lo, _) in zip(ends, nest.bounds, strict=True)]
                asked += [Binary("<=", b, hi) for (_, b), (_, hi) in zip(ends, nest.bounds, strict=True)]
            else:
                apart = [
                    Binary("||", Binary(">=", a, hi), Binary("<=", b, lo))
                    for (a, b), (lo, hi) in zip(ends, nest.bounds, strict=True)
                ]
                asked.append(reduce(lambda x, y: Binary("||", x, y), apart))
        yield from dict.fromkeys(asked)

    def groups(self, *, asking: bool) -> Iterator[StepGroup]:
        """Yield the groups of nests of one step; without ``asking`` those of a block inside all bounds."""
        rows = self.rows
        for group in self.whole.groups:
            nests = [nest for nest in group if asking or nest.whole]
            done: list[Stmt] = []
            for nest in nests:

                def compute(row: int, nest: PointwiseNest = nest) -> tuple[Stmt, ...]:
                    return rows.compute(nest, row)

                each = (s for row in range(self.whole.rows) for s in rows.compute(nest, row))
                done += self.where(nest.bounds, compute) if asking else each
            changed = frozenset[str]().union(*(nest.writes for nest in group))
            waits = any(any(at) for nest in group for _, at in nest.uses(changed))
            published = rows.publish([a for a in rows.shared if a in changed])
            yield StepGroup(tuple(done), waits, tuple(published))


def _under(conditions: Sequence[Expr], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return (If(conjunction(conditions), body, ()),) if conditions else body


def interior_body(made: ThreadRows) -> InteriorBody:
    """Return what a block inside of all bounds does.

    Its core begins at the values of the grid's variables in its first thread.
    """
    whole, plan = made.whole, made.plan
    along = ALONG[len(whole.shape) - 1]
    starts = [Var(axis.var + FIRST) for axis in made.kernel.loops]
    places: list[tuple[str, Expr]] = [(ROW, mul(Var(thread_number("y")), Const(whole.rows)))]
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
    """Return the conjunction of the conditions."""
    return reduce(lambda a, b: Binary("&&", a, b), conditions)
