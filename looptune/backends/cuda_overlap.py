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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from looptune.backends.kernel_writer import KernelWriter
from looptune.ir import Assign, Bin, Const, Expr, Load, Node, Stmt, Var
from looptune.overlapping import POINT, Nest, Offset, Overlap, offset, point, register
from looptune.plans import Dimension, Kernel, Plan
from looptune.rewrite import rewrite, substitute
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


INSIDE = f"inside{POINT}"


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
        yield from self.loads(indent)
        yield from self.told(tuple(self.tiles.shared), indent)
        yield indent + writer.barrier
        if whole.fixed:
            yield indent + writer.new("bool", INSIDE, writer.condition(_all(self.inside())))
            yield indent + writer.when(INSIDE)
            yield from writer.loop(whole.loop, indent + "    ", within=lambda at: self.steps(at, asking=False))
            yield indent + writer.otherwise()
            indent += "    "
        yield from writer.loop(whole.loop, indent, within=lambda at: self.steps(at, asking=True))
        yield from self.stores("    ")
        writer.tiles = frozenset()
        for name in (thread("x"), thread("y")):
            writer.unbind(name)

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
            yield indent + writer.new("int64", first(d).name, start + back)
            mine = first(d).name + ("" if dim == "z" else f" + {thread(dim)}")
            if d:
                yield indent + writer.new("int64", point(d).name, mine)
                continue
            mine += f" * {whole.rows}" if dim == "y" and whole.rows > 1 else ""
            for row in range(whole.rows):
                yield indent + writer.new("int64", outermost(row).name, mine + (f" + {row}" if row else ""))

    def at(self, row: int) -> tuple[Expr, ...]:
        """The point in one of the thread's rows."""
        return outermost(row), *(point(d) for d in range(1, len(self.whole.shape)))

    def loads(self, indent: str) -> Iterator[str]:
        """Zero where the array has no such element."""
        for row in range(self.whole.rows):
            for array, source in self.whole.source.items():
                held, at = self.plan.array(array), self.at(row)
                mine = Var(register(array, row), held.dtype)
                yield from self.writer.statement(Assign(mine, Const(0, held.dtype)), indent)
                yield indent + self.writer.when(self.writer.condition(_all(_within(at, self.extents(array)))))
                load = Load(source, at, held.dtype)
                yield from self.writer.statement(Assign(mine, load), indent + "    ")

    def extents(self, array: str) -> tuple[tuple[Expr, Expr], ...]:
        return tuple((Const(0), n) for n in self.plan.array(array).shape if n is not None)

    def stores(self, indent: str) -> Iterator[str]:
        """What is in the block's core."""
        writer, whole = self.writer, self.whole
        for row in range(whole.rows):
            core = tuple(self.core(row))
            if Const(0) in core:
                continue
            asked = [c for c in core if c != Const(1)]
            at = indent
            if asked:
                yield at + writer.when(writer.condition(_all(asked)))
                at += "    "
            for array, target in whole.target.items():
                dtype = self.plan.array(array).dtype
                inside = (Bin("<", p, n) for p, (_, n) in zip(self.at(row), self.extents(array), strict=True))
                yield at + writer.when(writer.condition(_all(inside)))
                store = Assign(Load(target, self.at(row), dtype), Var(register(array, row), dtype))
                yield from writer.statement(store, at + "    ")

    def core(self, row: int) -> Iterator[Expr]:
        """That one of the thread's rows is in the core; 1 or 0 where that is known."""
        dims = ALONG[len(self.whole.shape) - 1]
        for d, (dim, n, (before, behind)) in enumerate(zip(dims, self.whole.shape, self.whole.halo, strict=True)):
            if dim == "z":
                yield Const(int(before <= row < n - behind))
                continue
            rowed = d == 0 and len(dims) > 1
            at: Expr = Var(thread(dim))
            if rowed:
                at = add(mul(at, Const(self.whole.rows)), Const(row))
            if before:
                yield Bin(">=", at, Const(before))
            if behind:
                yield Bin("<", at, Const(n - behind))

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
                    for row in range(self.whole.rows):
                        conditions = _all(_within(self.at(row), self.moved(nest.bounds, row)))
                        yield indent + writer.when(writer.condition(conditions))
                        yield from writer.block(self.done(nest, row), indent + "    ")
            else:
                both = (s for nest in nests for row in range(self.whole.rows) for s in self.done(nest, row))
                yield from writer.block(tuple(both), indent)
            changed = frozenset().union(*(nest.writes for nest in group))
            if any(any(at) for nest in group for _, at in nest.uses(changed)):
                yield indent + writer.barrier
            told = [a for a in self.tiles.shared if a in changed]
            yield from self.told(told, indent)
            yield indent + writer.barrier

    def moved(self, node: tuple[tuple[Expr, Expr], ...], row: int) -> tuple[tuple[Expr, Expr], ...]:
        env = {point(0).name: self.at(row)[0]}
        return tuple((substitute(lo, env), substitute(hi, env)) for lo, hi in node)

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
                held = Var(register(array, row), shared.dtype)
                yield from self.writer.statement(Assign(Load(shared.name, (at,), shared.dtype), held), indent)


def _within(at: Sequence[Expr], bounds: Sequence[tuple[Expr, Expr]]) -> Iterator[Expr]:
    for p, (lo, hi) in zip(at, bounds, strict=True):
        yield Bin(">=", p, lo)
        yield Bin("<", p, hi)


def _all(conditions: Iterator[Expr] | Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: Bin("&&", a, b), conditions)
