"""The text of a kernel that takes tiles through several steps: loaded once, computed in registers, stored once.

    a_0, a_1 = a[i][j], a[i + 1][j]           what the thread holds
    a_tile[...] = a_0, ...                    what its neighbours read of it
    for t in t0 .. t0 + 4:
        barrier · b_0 = a_0 + a_tile[to the left], ... · b_tile[...] = b_0, ...
    if in the core: b_spare[i][j] = b_0, ...

Most blocks lie inside of all bounds: those compute without asking. Elsewhere each point asks for its nest's bounds.
What lies beyond the tile, or the array, is anything; nothing that the core needs depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from looptune.backends.kernel_writer import KernelWriter
from looptune.ir import Assign, Bin, Const, Expr, Load, Node, Stmt, Var
from looptune.overlapping import POINT, Nest, Offset, Overlap, offset, point, register
from looptune.plans import Dimension, Kernel, Plan
from looptune.rewrite import rewrite, substitute
from looptune.scope import names_in
from looptune.simplify import add, mul

ALIGNED = 16
"""Bytes that each array in shared memory begins at a multiple of."""
ALONG: tuple[tuple[Dimension, ...], ...] = (("x",), ("y", "x"), ("z", "y", "x"))
"""The dimension of the block along each dimension of space, by how many there are."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the threads read of each other of an array: these ``rows`` of each thread, element by element. ``before``
    and ``count``: where the first element is, and how much room there is, so that no place lies outside."""

    name: str
    array: str
    dtype: str
    rows: tuple[int, ...]
    before: int
    count: int


@dataclass(frozen=True)
class Tiles:
    """The shared arrays of a kernel, and where in them an element is."""

    kernel: Kernel
    plan: Plan

    @property
    def whole(self) -> Overlap:
        assert self.kernel.overlap is not None, "the kernel has tiles that overlap"
        return self.kernel.overlap

    @property
    def width(self) -> int:
        return self.whole.shape[-1]

    @cached_property
    def shared(self) -> dict[str, Shared]:
        """By the array."""
        used: dict[str, set[tuple[int, Offset]]] = {}
        for nest in self.whole.nests:
            for array, at in nest.uses(self.whole.source.keys()):
                for row in range(self.whole.rows):
                    if self.own(row, at) is None:
                        used.setdefault(array, set()).add((row, at))
        return {array: self.made(array, found) for array, found in used.items()}

    def made(self, array: str, used: set[tuple[int, Offset]]) -> Shared:
        rows = tuple(sorted({self.row(row, at)[1] for row, at in used}))
        least = min(0, *(self.step(rows, row, at) for row, at in used))
        most = max(0, *(self.step(rows, row, at) for row, at in used))
        x, y = self.kernel.block
        last = (y * len(rows) - 1) * self.width + self.width - 1 if len(self.whole.shape) > 1 else x * y - 1
        above = max(0, most - (len(rows) - 1) * self.width) if len(self.whole.shape) > 1 else most
        return Shared(f"{array}__tile", array, self.plan.array(array).dtype, rows, -least, 1 + last + above - least)

    def own(self, row: int, at: Offset) -> int | None:
        """The row of the thread itself that the element is in; None where it is another thread's."""
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

    def place(self, shared: Shared, further: int) -> Expr:
        """``further`` than the thread's first place."""
        x, y = (Var(thread(d)) for d in ("x", "y"))
        if len(self.whole.shape) == 1:
            return add(x, Const(shared.before + further))
        return add(add(mul(y, Const(len(shared.rows) * self.width)), x), Const(shared.before + further))


def thread(dimension: str) -> str:
    """The number of the thread in its block."""
    return f"{dimension}__thread"


def first(dimension: int) -> Var:
    """The first point of the block's tile along a dimension."""
    return Var(f"first{dimension}{POINT}")


def outermost(row: int) -> Var:
    """The outermost coordinate in a row: a name for each, for a place is computed of what is not negative, and another
    row may be before the first element."""
    return Var(f"p0_{row}{POINT}")


def started(array: str) -> Var:
    """The place of the thread's first row in an array."""
    return Var(f"{array}__begins")


INSIDE = f"inside{POINT}"
ROW = "row__thread"
"""The first row of the thread in the tile."""


def shared_bytes(kernel: Kernel, plan: Plan) -> int:
    """Bytes of shared memory that a block needs."""
    sizes = (s.count * np.dtype(s.dtype).itemsize for s in Tiles(kernel, plan).shared.values())
    return sum(-(-n // ALIGNED) * ALIGNED for n in sizes)


def together(kernel: Kernel, plan: Plan, writer: KernelWriter) -> Iterator[str]:
    """The body of the kernel."""
    return _Emission(Tiles(kernel, plan), kernel, plan, writer).lines()


@dataclass(frozen=True, slots=True)
class _Emission:
    tiles: Tiles
    kernel: Kernel
    plan: Plan
    writer: KernelWriter

    @property
    def whole(self) -> Overlap:
        return self.tiles.whole

    def lines(self) -> Iterator[str]:
        writer, whole, indent = self.writer, self.whole, "    "
        writer.tiles = frozenset(s.name for s in self.tiles.shared.values())
        for s in self.tiles.shared.values():
            yield indent + writer.shared(s.name, s.count, s.dtype)
        yield from self.places(indent)
        if whole.fixed:
            yield indent + writer.new("bool", INSIDE, writer.condition(_all(tuple(self.inside()))))
            yield indent + writer.when(INSIDE)
            yield from self.body(indent + "    ", asking=False)
            yield indent + writer.otherwise()
            yield from self.body(indent + "    ", asking=True)
        else:
            yield from self.body(indent, asking=True)
        writer.tiles = frozenset()
        for name in (thread("x"), thread("y"), ROW):
            writer.unbind(name)

    def body(self, indent: str, *, asking: bool) -> Iterator[str]:
        """What a block does; without ``asking`` one that lies inside all bounds."""
        writer = self.writer
        yield from self.loads(indent) if asking else self.all_loads(indent)
        yield from self.told(tuple(self.tiles.shared), indent)
        yield indent + writer.barrier
        yield from writer.loop(self.whole.loop, indent, within=lambda at: self.steps(at, asking=asking))
        yield from self.stores(indent) if asking else self.all_stores(indent)

    def places(self, indent: str) -> Iterator[str]:
        """Where the thread is in its block, and its first point in space."""
        writer, whole = self.writer, self.whole
        along = ALONG[len(whole.shape) - 1]
        for dim in ("x", "y")[: max(1, min(2, len(along)))]:
            yield indent + writer.new("uint32", thread(dim), writer.thread(dim))  # type: ignore[arg-type]
            writer.bind(thread(dim), True)
        for d, (dim, core, halo) in enumerate(zip(along, whole.core, whole.halo, strict=True)):
            start = f"{writer.block_number(dim, 'int64')} * {core}"
            back = f" - {halo[0]}" if halo[0] else ""
            yield indent + writer.new("int32", first(d).name, start + back)
            mine = first(d).name + ("" if dim == "z" else f" + {thread(dim)}")
            if d:
                yield indent + writer.new("int32", point(d).name, mine)
                continue
            if dim == "y":
                yield indent + writer.new("uint32", ROW, thread(dim) + (f" * {whole.rows}" if whole.rows > 1 else ""))
                mine = f"{first(d).name} + {ROW}"
                writer.bind(ROW, True)
            for row in range(whole.rows):
                yield indent + writer.new("int32", outermost(row).name, mine + (f" + {row}" if row else ""))

    def at(self, row: int) -> tuple[Expr, ...]:
        """The point in one of the thread's rows."""
        return outermost(row), *(point(d) for d in range(1, len(self.whole.shape)))

    def loads(self, indent: str) -> Iterator[str]:
        """Zero where the array has no such element."""
        for array, source in self.whole.source.items():
            dtype = self.plan.array(array).dtype
            for row in range(self.whole.rows):
                yield from self.writer.statement(Assign(self.held(array, row), Const(0, dtype)), indent)

            def loaded(row: int, at: str, array: str = array, source: str = source) -> Iterator[str]:
                element = Load(source, self.at(row), self.plan.array(array).dtype)
                return self.writer.statement(Assign(self.held(array, row), element), at)

            yield from self.where(self.extents(array), indent, loaded)

    def stores(self, indent: str) -> Iterator[str]:
        """What is in the block's core."""
        for array, target in self.whole.target.items():

            def stored(row: int, at: str, array: str = array, target: str = target) -> Iterator[str]:
                element = Load(target, self.at(row), self.plan.array(array).dtype)
                return self.writer.statement(Assign(element, self.held(array, row)), at)

            yield from self.where(self.extents(array), indent, stored, core=True)

    def all_loads(self, indent: str) -> Iterator[str]:
        for array, source in self.whole.source.items():
            yield from self.begun(source, indent)
            row = (Assign(self.held(array, k), self.further(array, source, k)) for k in range(self.whole.rows))
            yield from self.writer.block(tuple(row), indent)

    def all_stores(self, indent: str) -> Iterator[str]:
        """The rows of all arrays in turn, for they are in the core together."""
        for target in self.whole.target.values():
            yield from self.begun(target, indent)

        def stored(row: int, at: str) -> Iterator[str]:
            for array, target in self.whole.target.items():
                yield from self.writer.statement(Assign(self.further(array, target, row), self.held(array, row)), at)

        yield from self.where((), indent, stored, core=True)

    def begun(self, array: str, indent: str) -> Iterator[str]:
        """A variable for the place of the thread's first row, from which the others are so many rows further."""
        first = Load(array, self.at(0), self.plan.array(array).dtype)
        place = self.writer.unsigned_index(self.writer.place(first))
        yield indent + self.writer.new("uint32", started(array).name, place, fits=True)
        self.writer.bind(started(array).name, True)

    def further(self, array: str, there: str, row: int) -> Load:
        held = self.plan.array(array)
        length: Expr = Const(1)
        for n in held.shape[1:]:
            length = length if n is None else mul(length, n)
        return Load(there, (add(started(there), mul(Const(row), length)),), held.dtype)

    def where(
        self, bounds: Sequence[tuple[Expr, Expr]], indent: str, each: Callable[[int, str], Iterator[str]], *,
        core: bool = False,
    ) -> Iterator[str]:  # fmt: skip
        """What ``each`` row of the thread does that is within the bounds, where there are any, and in the ``core``,
        which begins within them. What all rows have in common is asked once."""
        along = range(len(self.whole.shape))

        def asked(row: int, d: int) -> tuple[Expr, ...]:
            mine = tuple(self.core(row, d)) if core else ()
            if not bounds:
                return mine
            p, (lo, hi) = self.at(row)[d], self.moved(bounds, row)[d]
            return (*mine, Bin("<", p, hi)) if core else (Bin(">=", p, lo), Bin("<", p, hi))

        same = (d for d in along[1:] if point(0).name not in names_in(tuple(bounds[d : d + 1])))
        common = tuple(c for d in same for c in asked(0, d))
        yield from self.under(common, indent)
        inner = indent + "    " if common else indent
        for row in range(self.whole.rows):
            own = tuple(c for d in along for c in asked(row, d) if c not in common and c != Const(1))
            if Const(0) not in own:
                yield from self.under(own, inner)
                yield from each(row, inner + "    " if own else inner)

    def under(self, conditions: Sequence[Expr], indent: str) -> Iterator[str]:
        if conditions:
            yield indent + self.writer.when(self.writer.condition(_all(conditions)))

    def core(self, row: int, d: int) -> Iterator[Expr]:
        """That one of the thread's rows is in the core along a dimension; 1 or 0 where that is known."""
        dims = ALONG[len(self.whole.shape) - 1]
        dim, n, (before, behind) = dims[d], self.whole.shape[d], self.whole.halo[d]
        if dim == "z":
            yield Const(int(before <= row < n - behind))
            return
        rowed = dim == "y" and d == 0
        at, row = (Var(ROW), row) if rowed else (Var(thread(dim)), 0)
        least, end = before - row, n - behind - row
        if least > 0:
            yield Bin(">=", at, Const(least))
        if end < n - (self.whole.rows - 1 if rowed else 0):
            yield Bin("<", at, Const(end))

    def held(self, array: str, row: int) -> Var:
        return Var(register(array, row), self.plan.array(array).dtype)

    def extents(self, array: str) -> tuple[tuple[Expr, Expr], ...]:
        return tuple((Const(0), n) for n in self.plan.array(array).shape if n is not None)

    def inside(self) -> Iterator[Expr]:
        """The block's tile lies within every nest that has all dimensions, and outside of all others."""
        ends = [(first(d), add(first(d), Const(n))) for d, n in enumerate(self.whole.shape)]
        asked: list[Expr] = []
        for nest in self.whole.nests:
            if nest.whole:
                asked += [Bin(">=", a, lo) for (a, _), (lo, _) in zip(ends, nest.bounds, strict=True)]
                asked += [Bin("<=", b, hi) for (_, b), (_, hi) in zip(ends, nest.bounds, strict=True)]
            else:
                apart = [
                    Bin("||", Bin(">=", a, hi), Bin("<=", b, lo))
                    for (a, b), (lo, hi) in zip(ends, nest.bounds, strict=True)
                ]
                asked.append(reduce(lambda x, y: Bin("||", x, y), apart))
        yield from dict.fromkeys(asked)

    def steps(self, indent: str, *, asking: bool) -> Iterator[str]:
        """One step; without ``asking`` that of a block which lies inside all bounds."""
        writer = self.writer
        for group in self.whole.groups:
            nests = [nest for nest in group if asking or nest.whole]
            if asking:
                for nest in nests:

                    def done(row: int, at: str, nest: Nest = nest) -> Iterator[str]:
                        return writer.block(self.done(nest, row), at)

                    yield from self.where(nest.bounds, indent, done)
            else:
                both = (s for nest in nests for row in range(self.whole.rows) for s in self.done(nest, row))
                yield from writer.block(tuple(both), indent)
            changed = frozenset().union(*(nest.writes for nest in group))
            if any(any(at) for nest in group for _, at in nest.uses(changed)):
                yield indent + writer.barrier
            told = [a for a in self.tiles.shared if a in changed]
            yield from self.told(told, indent)
            yield indent + writer.barrier

    def moved(self, bounds: Sequence[tuple[Expr, Expr]], row: int) -> tuple[tuple[Expr, Expr], ...]:
        env = {point(0).name: outermost(row)}
        return tuple((substitute(lo, env), substitute(hi, env)) for lo, hi in bounds)

    def done(self, nest: Nest, row: int) -> tuple[Stmt, ...]:
        """What the nest does at the point, elements being registers or those of other threads."""

        def rule(n: Node) -> Node | None:
            match n:
                case Load(array) if array in self.whole.source:
                    return self.element(row, n)
            return None

        placed: tuple[Stmt, ...] = rewrite(rule, nest.body)
        moved: tuple[Stmt, ...] = substitute(placed, {point(0).name: self.at(row)[0]})
        return moved

    def element(self, row: int, load: Load) -> Expr:
        at = offset(load)
        mine = self.tiles.own(row, at)
        if mine is not None:
            return Var(register(load.array, mine), load.dtype)
        shared = self.tiles.shared[load.array]
        return Load(shared.name, (self.tiles.place(shared, self.tiles.step(shared.rows, row, at)),), load.dtype)

    def told(self, arrays: Sequence[str], indent: str) -> Iterator[str]:
        """What other threads read goes to shared memory."""
        for array in arrays:
            shared = self.tiles.shared[array]
            for k, row in enumerate(shared.rows):
                at = self.tiles.place(shared, k * self.tiles.width)
                element = Load(shared.name, (at,), shared.dtype)
                yield from self.writer.statement(Assign(element, self.held(array, row)), indent)


def _all(conditions: Iterator[Expr] | Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: Bin("&&", a, b), conditions)
