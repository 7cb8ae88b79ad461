"""The statements of a block that computes overlapping tiles through several steps, for code generation and prediction.

a_0, a_1          the elements of the array a that a thread holds, in registers, one for each of its rows
a_0_0, a_0_1      the same where it has several columns
a__tile[...]      the elements that other threads read, in shared memory: of all rows, or of the first and last only

A block that keeps its tile from launch to launch loads all of it before the first one, and then only its halo; it
stores all of its core after the last one, and before only its rim, which is in the halo of other tiles. Threads of a
warp that are neighbours along the innermost dimension give each other elements without shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Literal

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Binary, Call, Const, Expr, If, Load, Local, Loop, Node, Select, Stmt, Unary, Var
from looptune.ir.rewrite import conjunction, disjunction, rewrite, substitute, walk
from looptune.ir.simplify import add, is_integer, mul
from looptune.lower.passes.flat_arrays import flat_index
from looptune.lower.passes.temporal_tiling import tile_in_time
from looptune.lower.plan import Kernel, Plan
from looptune.lower.temporal_tiles import (
    ALONG,
    FRESH,
    KEPT,
    LAST,
    POINT,
    ROW,
    Bounds,
    Cell,
    InteriorBody,
    LaneElement,
    Offset,
    PointwiseNest,
    SharedCells,
    StepGroup,
    TemporalBody,
    TemporalTile,
    TileSteps,
    column_coordinate,
    constant_offset,
    first_point,
    outermost_coordinate,
    point,
    thread_number,
)
from looptune.lower.tiles import FIRST


def allocate_tiles(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with what its threads hold of the tiles that they take through several steps as locals."""
    if kernel.time_tile is None:
        return kernel
    made, (loop,) = kernel.time_tile, kernel.body
    assert isinstance(loop, Loop), "the kernel is the loop over the steps"
    whole = tile_in_time(loop, plan.codelet, tiles=False)
    whole = replace(whole, reversed=made.reversed, spares=made.spares, resident=made.resident)
    return replace(kernel, time_tile=whole, locals=(*kernel.locals, *whole.registers(plan.codelet)))


WARP = 32
LANE_TYPES = frozenset({"float32", "float64", "int32", "int64"})
"""Of values that the lanes of a warp can read from each other, in Numba as well."""
WITHIN = "within"
Region = Literal["tile", "core", "halo", "rim"]
"""All of a tile, its core, what is around that, and what of the core is in the halo of another tile."""


@dataclass(frozen=True)
class ThreadCells:
    """The elements of each array that a thread holds, row by row, and those that it shares with other threads."""

    kernel: Kernel
    plan: Plan

    @property
    def whole(self) -> TemporalTile:
        assert self.kernel.time_tile is not None, "the kernel has tiles that overlap"
        return self.kernel.time_tile

    @property
    def across(self) -> int:
        """Return the number of threads along the innermost dimension."""
        return self.whole.shape[-1] // self.whole.columns

    @cached_property
    def shared(self) -> dict[str, SharedCells]:
        """Return, for each array, the elements that threads read from each other in shared memory."""
        used: dict[str, set[tuple[Cell, Offset]]] = {}
        for nest in self.whole.nests:
            for array, at in nest.uses(self.whole.source.keys()):
                for cell in self.whole.cells:
                    if self.own(cell, at) is None and self.lane(array, cell, at) is None:
                        used.setdefault(array, set()).add((cell, at))
        return {array: self.made(array, found) for array, found in used.items()}

    def made(self, array: str, used: set[tuple[Cell, Offset]]) -> SharedCells:
        cells = tuple(sorted({self.owner(cell, at)[2] for cell, at in used}))
        least = min(0, *(self.step(cells, cell, at) for cell, at in used))
        most = max(0, *(self.step(cells, cell, at) for cell, at in used))
        high = self.kernel.block[1] if len(self.whole.shape) > 1 else 1
        last = (high * len(cells) - 1) * self.across + self.across - 1
        above = max(0, most - (len(cells) - 1) * self.across)
        count = 1 + last + above - least
        return SharedCells(f"{array}__tile", array, self.plan.array(array).dtype, cells, -least, count)

    def own(self, cell: Cell, at: Offset) -> Cell | None:
        """Return the element of this thread, or None if it belongs to another thread."""
        along, across, there = self.owner(cell, at)
        return there if along == across == 0 else None

    def owner(self, cell: Cell, at: Offset) -> tuple[int, int, Cell]:
        """Return how many threads further along y and x an element is, and which of theirs it is."""
        across, column = divmod(cell[1] + at[-1], self.whole.columns)
        if len(at) == 1:
            return 0, across, (0, column)
        if len(at) > 2:  # beyond the tile there is nothing
            return at[1], across, (min(max(cell[0] + at[0], 0), self.whole.rows - 1), column)
        along, row = divmod(cell[0] + at[0], self.whole.rows)
        return along, across, (row, column)

    def lane(self, array: str, cell: Cell, at: Offset) -> LaneElement | None:
        """Return an element that a neighbour in the warp has, or None where shared memory is needed.

        What lanes at the two ends of a row receive is beyond the tile, and arbitrary.
        """
        along, across, there = self.owner(cell, at)
        dtype, source = self.plan.array(array).dtype, self.whole.register(array, there)
        if not self.whole.resident or along or abs(across) != 1 or dtype not in LANE_TYPES or WARP % self.across:
            return None
        found = LaneElement("", source, across, dtype)
        return replace(found, target=f"{source.removesuffix(KEPT)}_{found.side}{KEPT}")

    def lanes(self, nests: Iterable[PointwiseNest]) -> tuple[LaneElement, ...]:
        """Return what the nests need of the neighbours in the warp."""
        used = ((array, cell, at) for nest in nests for array, at in nest.uses(self.whole.source)
                for cell in self.whole.cells)  # fmt: skip
        found = (self.lane(*each) for each in used if self.own(*each[1:]) is None)
        return tuple(dict.fromkeys(element for element in found if element is not None))

    def step(self, cells: Sequence[Cell], cell: Cell, at: Offset) -> int:
        """Return the distance of an element from the thread's first place in shared memory, in elements."""
        along, across, there = self.owner(cell, at)
        return (along * len(cells) + cells.index(there)) * self.across + across

    def place(self, shared: SharedCells, further: int) -> Expr:
        """Return the index in shared memory that is ``further`` elements than the thread's first place."""
        x, y = (Var(thread_number(d)) for d in ("x", "y"))
        if len(self.whole.shape) == 1:
            return add(x, Const(shared.before + further))
        return add(add(mul(y, Const(len(shared.cells) * self.across)), x), Const(shared.before + further))

    def at(self, cell: Cell) -> tuple[Expr, ...]:
        """Return the point of one of the thread's elements."""
        return tuple(self.coordinate(cell, d) for d in range(len(self.whole.shape)))

    def coordinate(self, cell: Cell, d: int) -> Var:
        if d == len(self.whole.shape) - 1 and self.whole.columns > 1:
            return column_coordinate(d, cell[1])
        return point(d) if d else outermost_coordinate(cell[0])

    def register(self, array: str, cell: Cell) -> Var:
        """Return the register of one of the thread's elements."""
        return Var(self.whole.register(array, cell), self.plan.array(array).dtype)

    def extents(self, array: str) -> tuple[tuple[Expr, Expr], ...]:
        return tuple((Const(0), n) for n in self.plan.array(array).shape if n is not None)

    def core(self, cell: Cell, d: int, *, inner: bool = False) -> Iterator[Expr]:
        """Yield the condition that one of the thread's elements is in the core along a dimension.

        It is 1 or 0 if that is known. If ``inner``, it says instead that no other tile has the element in its halo.
        """
        dims = ALONG[len(self.whole.shape) - 1]
        dim, n, (before, behind) = dims[d], self.whole.shape[d], self.whole.halo[d]
        if inner:
            before = behind = before + behind
        if dim == "z":
            yield Const(int(before <= cell[0] < n - behind))
            return
        if dim == "y" and d == 0:
            at, least, end, most = Var(ROW), before - cell[0], n - behind - cell[0], n - self.whole.rows + 1
        else:
            each = self.whole.columns if d == len(dims) - 1 else 1
            place = cell[1] if d == len(dims) - 1 else 0
            at, most = Var(thread_number(dim)), n // each
            least, end = -(-(before - place) // each), -(-(n - behind - place) // each)
        if least > 0:
            yield Binary(">=", at, Const(least))
        if end < most:
            yield Binary("<", at, Const(end))

    def compute(self, nest: PointwiseNest, cell: Cell) -> tuple[Stmt, ...]:
        """Return the computation of the nest at the point.

        Elements are registers, or those of other threads in shared memory.
        """

        def rule(n: Node) -> Node | None:
            match n:
                case Load(array) if array in self.whole.source:
                    return self.element(cell, n)
            return None

        placed = rewrite(rule, nest.body)
        last = len(self.whole.shape) - 1
        return substitute(placed, {point(d).name: self.coordinate(cell, d) for d in (0, last)})

    def element(self, cell: Cell, load: Load) -> Expr:
        at = constant_offset(load)
        mine, lane = self.own(cell, at), self.lane(load.array, cell, at)
        if mine is not None:
            return Var(self.whole.register(load.array, mine), load.dtype)
        if lane is not None:
            return Var(lane.target, load.dtype)
        shared = self.shared[load.array]
        return Load(shared.name, (self.place(shared, self.step(shared.cells, cell, at)),), load.dtype)

    def publish(self, arrays: Iterable[str]) -> Iterator[Stmt]:
        """Yield the stores to shared memory of what other threads read."""
        for array in arrays:
            shared = self.shared[array]
            for k, cell in enumerate(shared.cells):
                at = self.place(shared, k * self.across)
                yield Assign(Load(shared.name, (at,), shared.dtype), self.register(array, cell))


def first_row_position(array: str) -> Var:
    """Return the position of the thread's first row in an array."""
    return Var(f"{array}__begins")


def make_bodies(kernel: Kernel, plan: Plan) -> Kernel:
    """Return a kernel that takes several steps in tiles of its own with what its threads do; others as they are."""
    if kernel.time_tile is None:
        return kernel
    made = _Bodies(ThreadCells(kernel, plan))
    begins = frozenset(first_row_position(array).name for pair in kernel.time_tile.spares for array in pair)
    body = made.body()
    own = {e.target: Local(e.target, e.dtype) for group in body.anywhere.groups for e in group.lanes}
    own |= {v.name: v for nest in kernel.time_tile.nests if (v := made.new(nest)) is not None}
    asked = (n for part in (body.anywhere.load, body.anywhere.store) for n in walk(part) if isinstance(n, Var))
    own |= {n.name: Local(n.name, n.dtype) for n in asked if n.name.startswith(WITHIN)}
    return replace(kernel, time_body=body, locals=(*kernel.locals, *own.values()), positions=kernel.positions | begins)


Each = Callable[[Cell], tuple[Stmt, ...]]
"""The statements for one of a thread's elements."""


class Flags(dict[tuple[Expr, ...], Var]):
    """Variables with the truth of conditions, which are evaluated once for all elements of a thread.

    They have a ``name``, and are numbered; ``made`` sets them. No condition is a branch.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, conditions: tuple[Expr, ...]) -> Var:
        self[conditions] = Var(f"{WITHIN}_{self.name}{len(self)}{POINT}")
        return self[conditions]

    def made(self) -> Iterator[Stmt]:
        return (Assign(flag, every(conditions)) for conditions, flag in self.items())


def every(conditions: Iterable[Expr]) -> Expr:
    """Return whether all of the conditions hold, as 1 or 0, without a branch."""
    return reduce(lambda a, b: Binary("&", a, b), conditions)


@dataclass(frozen=True, slots=True)
class _Bodies:
    cells: ThreadCells

    @property
    def whole(self) -> TemporalTile:
        return self.cells.whole

    def body(self) -> TemporalBody:
        """Return the code of the threads.

        Blocks that keep their tiles have no shorter code inside all bounds: all wait for those at the edge of space.
        """
        split = self.whole.fixed and not self.whole.resident
        inside = conjunction(tuple(self.inside())) if split else None
        interior = self.steps(asking=False) if split else None
        shared = tuple(self.cells.shared.values())
        return TemporalBody(shared, inside, interior, self.steps(asking=True), interior_body(self.cells))

    def steps(self, *, asking: bool) -> TileSteps:
        """Return what a block does; without ``asking`` one that lies inside all bounds."""
        publish = tuple(self.cells.publish(self.cells.shared))
        if not asking:
            groups = tuple(self.groups(None, asking=False))
            return TileSteps(tuple(self.all_loads()), publish, groups, tuple(self.all_stores()))
        loading, storing, stepping = (self.flags(name) for name in ("load", "store", "step"))
        load, store = tuple(self.loads(loading)), tuple(self.stores(storing))
        groups = tuple(self.groups(stepping if self.whole.fixed else None, asking=True))
        made = tuple(() if flags is None else tuple(flags.made()) for flags in (loading, stepping, storing))
        return TileSteps((*made[0], *load, *made[1]), publish, groups, (*made[2], *store))

    def flags(self, name: str) -> Flags | None:
        """Return new flags if a thread has so many elements that each condition concerns several."""
        return Flags(name) if self.whole.columns > 1 else None

    def loads(self, flags: Flags | None) -> Iterator[Stmt]:
        """Yield loads of what the array has of the tile; registers that a block keeps have a value before."""
        again = self.whole.exchanged if self.whole.resident else ()
        for array in (a for a in self.whole.source if a not in again):
            load = self.load(array, "tile", flags)
            yield from (If(Var(FRESH), load),) if self.whole.resident else (*self.zeros(array), *load)
        yield from (s for array in again for s in self.load(array, "halo", flags))

    def zeros(self, array: str) -> Iterator[Stmt]:
        dtype = self.cells.plan.array(array).dtype
        return (Assign(self.cells.register(array, cell), Const(0, dtype)) for cell in self.whole.cells)

    def load(self, array: str, region: Region, flags: Flags | None) -> tuple[Stmt, ...]:
        cells, source = self.cells, self.whole.source[array]

        def load(cell: Cell) -> tuple[Stmt, ...]:
            held = cells.register(array, cell)
            return (Assign(held, Load(source, cells.at(cell), held.dtype)),)

        return self.where(cells.extents(array), load, region, flags)

    def stores(self, flags: Flags | None) -> Iterator[Stmt]:
        """Yield the stores of what is in the block's core."""
        again = self.whole.exchanged if self.whole.resident else ()
        for array in (a for a in self.whole.target if a not in again):
            store = self.store(array, "core", flags)
            yield from (If(Var(LAST), store),) if self.whole.resident else store
        yield from (s for array in again for s in self.store(array, "rim", flags))

    def store(self, array: str, region: Region, flags: Flags | None) -> tuple[Stmt, ...]:
        cells, target = self.cells, self.whole.target[array]

        def store(cell: Cell) -> tuple[Stmt, ...]:
            held = cells.register(array, cell)
            return (Assign(Load(target, cells.at(cell), held.dtype), held),)

        return self.where(cells.extents(array), store, region, flags)

    def all_loads(self) -> Iterator[Stmt]:
        for array, source in self.whole.source.items():
            yield self.first_row_variables(source)
            for cell in self.whole.cells:
                yield Assign(self.cells.register(array, cell), self.row_offset(array, source, cell))

    def all_stores(self) -> Iterator[Stmt]:
        """Yield the rows of all arrays in turn, for they are in the core together."""
        targets = self.whole.target.items()
        loaded = {*self.whole.source.values()}
        yield from (self.first_row_variables(target) for _, target in targets if target not in loaded)

        def store(cell: Cell) -> tuple[Stmt, ...]:
            return tuple(Assign(self.row_offset(a, t, cell), self.cells.register(a, cell)) for a, t in targets)

        yield from self.where((), store, "core")

    def first_row_variables(self, array: str) -> Assign:
        """Return the place of the thread's first row in a variable, from which the others are so many rows further."""
        element = Load(array, self.cells.at((0, 0)), self.cells.plan.array(array).dtype)
        return Assign(first_row_position(array), flat_index(element, self.cells.plan))

    def row_offset(self, array: str, there: str, cell: Cell) -> Load:
        held = self.cells.plan.array(array)
        length: Expr = Const(1)
        for n in held.shape[1:]:
            length = length if n is None else mul(length, n)
        further = add(mul(Const(cell[0]), length), Const(cell[1]))
        return Load(there, (add(first_row_position(there), further),), held.dtype)

    def where(
        self, bounds: Sequence[Bounds], each: Each, region: Region = "tile", flags: Flags | None = None
    ) -> tuple[Stmt, ...]:
        """Return ``each`` element of the thread that is within the bounds and in the region, under its conditions.

        The core begins within the bounds; conditions that all elements share are evaluated once.
        """
        along = range(len(self.whole.shape))
        shared = along[1:] if self.whole.columns == 1 else ()
        same = (d for d in shared if point(0).name not in names_in(tuple(bounds[d : d + 1])))
        common = tuple(c for d in same for c in self.asked((0, 0), d, bounds, region))
        out: list[tuple[tuple[Expr, ...], tuple[Stmt, ...]]] = []
        for cell in self.whole.cells:
            own = self.conditions(cell, bounds, region, flags, common)
            if Const(0) in own:
                continue
            before = out.pop()[1] if self.whole.columns > 1 and out and out[-1][0] == own else ()
            out.append((own, (*before, *each(cell))))
        return _under(common, tuple(s for own, body in out for s in _under(own, body)))

    def conditions(
        self, cell: Cell, bounds: Sequence[Bounds], region: Region, flags: Flags | None, common: tuple[Expr, ...] = ()
    ) -> tuple[Expr, ...]:
        """Return the conditions for an element to be within the bounds and in the region, without ``common`` ones."""
        each = [self.asked(cell, d, bounds, region) for d in range(len(self.whole.shape))]
        own = [tuple(c for c in asked if c not in common and c != Const(1)) for asked in each]
        outside = self.in_region(cell, region, flags)
        if flags is None or Const(0) in (*(c for asked in own for c in asked), *outside):
            return (*(c for asked in own for c in asked), *outside)
        asked = (*(flags[conditions] for conditions in own if conditions), *outside)
        return (every(asked),) if asked else ()

    def asked(self, cell: Cell, d: int, bounds: Sequence[Bounds], region: Region) -> tuple[Expr, ...]:
        """Return the conditions along a dimension for an element to be within the bounds, and in the core."""
        cells = self.cells
        mine = tuple(cells.core(cell, d)) if region in ("core", "rim") else ()
        if not bounds:
            return mine
        lo, hi = self.moved(bounds, cell)[d]
        least, most = (cells.coordinate(cell if self.differ(d, e) else (cell[0], 0), d) for e in (lo, hi))
        ahead = () if region in ("core", "rim") else (Binary(">=", least, lo),)
        return (*mine, *ahead, Binary("<", most, hi))

    def differ(self, d: int, bound: Expr) -> bool:
        """Return whether a bound may lie between two columns of a thread."""
        columns, last = self.whole.columns, len(self.whole.shape) - 1
        apart = (self.whole.halo[d][0], self.whole.core[d], int(bound.value) if isinstance(bound, Const) else 1)
        return d < last or any(n % columns for n in apart)

    def in_region(self, cell: Cell, region: Region, flags: Flags | None) -> tuple[Expr, ...]:
        """Return the condition that an element is in the halo, or in the rim of the core.

        If the block loads its whole tile or stores its whole core, this holds for all elements.
        """
        if region not in ("halo", "rim"):
            return ()
        along = range(len(self.whole.shape))
        each = (tuple(self.cells.core(cell, d, inner=region == "rim")) for d in along)
        inside = [own for asked in each if (own := tuple(c for c in asked if c != Const(1)))]
        whole = Var(FRESH if region == "halo" else LAST)
        if (Const(0),) in inside:
            return ()
        if not inside:
            return (whole,)
        if flags is None:
            return (Binary("||", whole, Unary("!", conjunction([c for own in inside for c in own]))),)
        return (Binary("|", whole, Binary("^", every(flags[own] for own in inside), Const(1))),)

    def moved(self, bounds: Sequence[Bounds], cell: Cell) -> tuple[Bounds, ...]:
        env = {point(d).name: self.cells.coordinate(cell, d) for d in (0, len(self.whole.shape) - 1)}
        return tuple((substitute(lo, env), substitute(hi, env)) for lo, hi in bounds)

    def inside(self) -> Iterator[Expr]:
        """Yield the conditions that the block's tile is inside.

        It is inside all arrays and every nest that has all dimensions, and outside the others.
        """
        ends = [(first_point(d), add(first_point(d), Const(n))) for d, n in enumerate(self.whole.shape)]
        asked: list[Expr] = [Binary(">=", a, Const(0)) for a, _ in ends]
        for array in self.whole.source:
            asked += [Binary("<=", b, n) for (_, b), (_, n) in zip(ends, self.cells.extents(array), strict=True)]
        for nest in self.whole.nests:
            if nest.whole:
                asked += [Binary(">=", a, lo) for (a, _), (lo, _) in zip(ends, nest.bounds, strict=True)]
                asked += [Binary("<=", b, hi) for (_, b), (_, hi) in zip(ends, nest.bounds, strict=True)]
            else:
                apart = [
                    Binary("||", Binary(">=", a, hi), Binary("<=", b, lo))
                    for (a, b), (lo, hi) in zip(ends, nest.bounds, strict=True)
                ]
                asked.append(disjunction(apart))
        yield from dict.fromkeys(asked)

    def groups(self, flags: Flags | None, *, asking: bool) -> Iterator[StepGroup]:
        """Yield the groups of nests of one step; without ``asking`` those of a block inside all bounds."""
        cells = self.cells
        for group in self.whole.groups:
            nests = [nest for nest in group if asking or nest.whole]
            done = tuple(s for nest in nests for s in self.computed(nest, flags, asking=asking))
            changed = frozenset[str]().union(*(nest.writes for nest in group))
            used = (use for nest in group for use in nest.uses(changed & cells.shared.keys()))
            waits = any(any(at) for _, at in used)
            published = cells.publish([a for a in cells.shared if a in changed])
            yield StepGroup(done, waits, tuple(published), cells.lanes(nests))

    def computed(self, nest: PointwiseNest, flags: Flags | None, *, asking: bool) -> Iterator[Stmt]:
        """Yield what the nest computes of the thread's elements, within its bounds if it is ``asking``.

        A value that can be computed anywhere is, and then kept where it is within the bounds: that needs no branch.
        """
        new = self.new(nest)
        if not asking:
            yield from (s for cell in self.whole.cells for s in self.cells.compute(nest, cell))
        elif new is None:
            yield from self.where(nest.bounds, lambda cell: self.cells.compute(nest, cell), flags=flags)
        else:
            for cell in self.whole.cells:
                (stored,) = self.cells.compute(nest, cell)
                assert isinstance(stored, Assign), "it has one assignment"
                yield replace(stored, target=Var(new.name, new.dtype))
                kept = replace(stored, value=Var(new.name, new.dtype))
                yield from _under(self.conditions(cell, nest.bounds, "tile", flags), (kept,))

    def new(self, nest: PointwiseNest) -> Local | None:
        """Return the variable for values of a nest that can be computed anywhere; None where bounds come first."""
        match nest.body:
            case (Assign(Load(array, _, dtype), value),) if self.whole.columns > 1 and array in self.whole.source:
                safe = not is_integer(dtype) and not any(
                    isinstance(n, (Call, Select)) or (isinstance(n, Load) and n.array not in self.whole.source)
                    or (isinstance(n, Binary) and n.op in ("/", "%") and not n.dtype.startswith("float"))
                    for n in walk(value))  # fmt: skip
                return Local(f"{array}_new{KEPT}", dtype) if safe else None
        return None


def _under(conditions: Sequence[Expr], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return (If(conjunction(conditions), body, ()),) if conditions else body


def interior_body(made: ThreadCells) -> InteriorBody:
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
            each = whole.columns if d == len(along) - 1 else 1
            mine = add(mine, mul(Var(ROW if d == 0 and dim == "y" else thread_number(dim)), Const(each)))
        if d == len(along) - 1 and whole.columns > 1:
            places += [(column_coordinate(d, k).name, add(mine, Const(k))) for k in range(whole.columns)]
        elif d == 0:
            places += [(outermost_coordinate(k).name, add(mine, Const(k))) for k in range(whole.rows)]
        else:
            places.append((point(d).name, mine))
    loads = [Assign(made.register(a, cell), Load(source, made.at(cell), plan.array(a).dtype))
             for a, source in whole.source.items() for cell in whole.cells]  # fmt: skip
    groups = tuple(
        (*(s for nest in group if nest.whole for cell in whole.cells for s in made.compute(nest, cell)),
         *made.publish([a for a in made.shared if any(a in nest.writes for nest in group)]))
        for group in whole.groups
    )  # fmt: skip
    stores: list[Stmt] = []
    for cell in whole.cells:
        stored = tuple(Assign(Load(t, made.at(cell), plan.array(a).dtype), made.register(a, cell))
                       for a, t in whole.target.items())  # fmt: skip
        asked = [c for d in range(len(along)) for c in made.core(cell, d) if c != Const(1)]
        stores += (If(conjunction(asked), stored),) if asked else stored
    return InteriorBody(tuple(places), (*loads, *made.publish(tuple(made.shared))), whole.loop, groups, tuple(stores))
