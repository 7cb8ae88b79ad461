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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from looptune.backends.codegen.writer import KernelWriter
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Binary, Const, Expr, Load, Stmt
from looptune.ir.rewrite import substitute
from looptune.ir.simplify import add, mul
from looptune.lower.passes.temporal_tile_bodies import (
    ALONG,
    INSIDE,
    ROW,
    ThreadRows,
    conjunction,
    first_point,
    first_row_position,
    outermost_coordinate,
    thread_number,
)
from looptune.lower.passes.temporal_tiling import PointwiseNest, TemporalTile, point
from looptune.lower.plan import Kernel, Plan

ALIGNED = 16
"""Bytes that each array in shared memory begins at a multiple of."""


def shared_bytes(kernel: Kernel, plan: Plan) -> int:
    """Bytes of shared memory that a block needs."""
    sizes = (s.count * np.dtype(s.dtype).itemsize for s in ThreadRows(kernel, plan).shared.values())
    return sum(-(-n // ALIGNED) * ALIGNED for n in sizes)


def emit_temporal_body(kernel: Kernel, plan: Plan, writer: KernelWriter) -> Iterator[str]:
    """Yield the body of a kernel with temporal tiles."""
    return _Emission(ThreadRows(kernel, plan), plan, writer).lines()


@dataclass(frozen=True, slots=True)
class _Emission:
    rows: ThreadRows
    plan: Plan
    writer: KernelWriter

    @property
    def whole(self) -> TemporalTile:
        return self.rows.whole

    def lines(self) -> Iterator[str]:
        writer, whole, indent = self.writer, self.whole, "    "
        writer.tiles = frozenset(s.name for s in self.rows.shared.values())
        for s in self.rows.shared.values():
            yield indent + writer.shared(s.name, s.count, s.dtype)
        yield from self.positions(indent)
        if whole.fixed:
            yield indent + writer.declare("bool", INSIDE, writer.condition(conjunction(tuple(self.inside()))))
            yield indent + writer.if_(INSIDE)
            yield from self.body(indent + "    ", asking=False)
            yield indent + writer.else_()
            yield from self.body(indent + "    ", asking=True)
        else:
            yield from self.body(indent, asking=True)
        writer.tiles = frozenset()
        for name in (thread_number("x"), thread_number("y"), ROW):
            writer.unbind(name)

    def body(self, indent: str, *, asking: bool) -> Iterator[str]:
        """Yield what a block does; without ``asking`` one that lies inside all bounds."""
        writer = self.writer
        yield from self.loads(indent) if asking else self.all_loads(indent)
        yield from self.statements(self.rows.publish(self.rows.shared), indent)
        yield indent + writer.barrier
        yield from writer.loop(self.whole.loop, indent, within=lambda at: self.steps(at, asking=asking))
        yield from self.stores(indent) if asking else self.all_stores(indent)

    def positions(self, indent: str) -> Iterator[str]:
        """Where the thread is in its block, and its first point in space."""
        writer, whole = self.writer, self.whole
        along = ALONG[len(whole.shape) - 1]
        for own in (d for d in reversed(along) if d != "z"):
            yield indent + writer.declare("uint32", thread_number(own), writer.thread(own))
            writer.bind(thread_number(own), True)
        for d, (dim, core, halo) in enumerate(zip(along, whole.core, whole.halo, strict=True)):
            start = f"{writer.block_number(dim, 'int64')} * {core}"
            back = f" - {halo[0]}" if halo[0] else ""
            yield indent + writer.declare("int32", first_point(d).name, start + back)
            mine = first_point(d).name + ("" if dim == "z" else f" + {thread_number(dim)}")
            if d:
                yield indent + writer.declare("int32", point(d).name, mine)
                continue
            if dim == "y":
                yield indent + writer.declare(
                    "uint32", ROW, thread_number(dim) + (f" * {whole.rows}" if whole.rows > 1 else "")
                )
                mine = f"{first_point(d).name} + {ROW}"
                writer.bind(ROW, True)
            for row in range(whole.rows):
                yield indent + writer.declare(
                    "int32", outermost_coordinate(row).name, mine + (f" + {row}" if row else "")
                )

    def loads(self, indent: str) -> Iterator[str]:
        """Zero where the array has no such element."""
        for array, source in self.whole.source.items():
            dtype = self.plan.array(array).dtype
            for row in range(self.whole.rows):
                yield from self.writer.statement(Assign(self.rows.tiled_arrays(array, row), Const(0, dtype)), indent)

            def loaded(row: int, at: str, array: str = array, source: str = source) -> Iterator[str]:
                element = Load(source, self.rows.at(row), self.plan.array(array).dtype)
                return self.writer.statement(Assign(self.rows.tiled_arrays(array, row), element), at)

            yield from self.where(self.rows.extents(array), indent, loaded)

    def stores(self, indent: str) -> Iterator[str]:
        """Yield what is in the block's core."""
        for array, target in self.whole.target.items():

            def stored(row: int, at: str, array: str = array, target: str = target) -> Iterator[str]:
                element = Load(target, self.rows.at(row), self.plan.array(array).dtype)
                return self.writer.statement(Assign(element, self.rows.tiled_arrays(array, row)), at)

            yield from self.where(self.rows.extents(array), indent, stored, core=True)

    def all_loads(self, indent: str) -> Iterator[str]:
        for array, source in self.whole.source.items():
            yield from self.first_row_variables(source, indent)
            row = (
                Assign(self.rows.tiled_arrays(array, k), self.row_offset(array, source, k))
                for k in range(self.whole.rows)
            )
            yield from self.writer.block(tuple(row), indent)

    def all_stores(self, indent: str) -> Iterator[str]:
        """Yield the rows of all arrays in turn, for they are in the core together."""
        for target in self.whole.target.values():
            yield from self.first_row_variables(target, indent)

        def stored(row: int, at: str) -> Iterator[str]:
            for array, target in self.whole.target.items():
                yield from self.writer.statement(
                    Assign(self.row_offset(array, target, row), self.rows.tiled_arrays(array, row)), at
                )

        yield from self.where((), indent, stored, core=True)

    def first_row_variables(self, array: str, indent: str) -> Iterator[str]:
        """Yield a variable for the place of the thread's first row, from which the others are so many rows further."""
        first = Load(array, self.rows.at(0), self.plan.array(array).dtype)
        place = self.writer.unsigned_index(self.writer.place(first))
        yield indent + self.writer.declare("uint32", first_row_position(array).name, place, fits=True)
        self.writer.bind(first_row_position(array).name, True)

    def row_offset(self, array: str, there: str, row: int) -> Load:
        held = self.plan.array(array)
        length: Expr = Const(1)
        for n in held.shape[1:]:
            length = length if n is None else mul(length, n)
        return Load(there, (add(first_row_position(there), mul(Const(row), length)),), held.dtype)

    def where(
        self, bounds: Sequence[tuple[Expr, Expr]], indent: str, each: Callable[[int, str], Iterator[str]], *,
        core: bool = False,
    ) -> Iterator[str]:  # fmt: skip
        """Yield the computation of ``each`` row of the thread that is within the bounds and in the ``core``.

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
        yield from self.guarded(common, indent)
        inner = indent + "    " if common else indent
        for row in range(self.whole.rows):
            own = tuple(c for d in along for c in asked(row, d) if c not in common and c != Const(1))
            if Const(0) not in own:
                yield from self.guarded(own, inner)
                yield from each(row, inner + "    " if own else inner)

    def guarded(self, conditions: Sequence[Expr], indent: str) -> Iterator[str]:
        if conditions:
            yield indent + self.writer.if_(self.writer.condition(conjunction(conditions)))

    def inside(self) -> Iterator[Expr]:
        """Yield the condition that the block's tile is inside.

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

    def steps(self, indent: str, *, asking: bool) -> Iterator[str]:
        """One step; without ``asking`` that of a block which lies inside all bounds."""
        writer = self.writer
        for group in self.whole.groups:
            nests = [nest for nest in group if asking or nest.whole]
            if asking:
                for nest in nests:

                    def done(row: int, at: str, nest: PointwiseNest = nest) -> Iterator[str]:
                        return writer.block(self.rows.compute(nest, row), at)

                    yield from self.where(nest.bounds, indent, done)
            else:
                both = (s for nest in nests for row in range(self.whole.rows) for s in self.rows.compute(nest, row))
                yield from writer.block(tuple(both), indent)
            changed = frozenset().union(*(nest.writes for nest in group))
            if any(any(at) for nest in group for _, at in nest.uses(changed)):
                yield indent + writer.barrier
            told = [a for a in self.rows.shared if a in changed]
            yield from self.statements(self.rows.publish(told), indent)
            yield indent + writer.barrier

    def moved(self, bounds: Sequence[tuple[Expr, Expr]], row: int) -> tuple[tuple[Expr, Expr], ...]:
        env = {point(0).name: outermost_coordinate(row)}
        return tuple((substitute(lo, env), substitute(hi, env)) for lo, hi in bounds)

    def statements(self, body: Iterable[Stmt], indent: str) -> Iterator[str]:
        for stmt in body:
            yield from self.writer.statement(stmt, indent)
