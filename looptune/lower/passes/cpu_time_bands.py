"""Launches of several steps on a CPU: each core computes a band of rows through them, in place.

    first, of every band, in parallel               then, between two bands
        for row in the band, and a few more:
            for t:                                  for t:
                B[row - 1] = f(A around)                B = f(A around)     a few rows, more in each step
                A[row - 2] = g(B around)                A = g(B around)
                row -= 2

A nest follows the ones before it as closely as their reads and writes permit: a row is read from memory and written
once for all steps, and is in a cache in between. Each step leaves out a few more rows at either edge of a band, those
that need a row beyond it, or that a row beyond it still needs; these are computed between the bands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Binary, Const, Expr, Load, Loop, Node, Select, Stmt, Var
from looptune.ir.rewrite import rewrite
from looptune.ir.simplify import add, div, max_of, min_of, mul
from looptune.lower.cpu_names import CORES
from looptune.lower.plan import HostIf, HostLoop, HostWhile, Kernel, Launch, Plan, Step
from looptune.lower.temporal_tiles import (
    Bounds,
    PointwiseNest,
    TemporalTile,
    constant_offset,
    point,
    steps_per_launch,
)

if TYPE_CHECKING:
    from looptune.lower.machine import Machine

BAND, BANDS, LOW, HIGH, ROW, AT = (Var(f"{n}__band", "int64") for n in ("this", "all", "low", "high", "row", "at"))
_ONE = Const(1, "int64")
ELEMENTS = 2048
"""Of an array of one dimension: so many of them go through the steps as one row."""


def make_bands(plan: Plan, machine: Machine) -> Plan:
    """Return the plan for a CPU."""
    return make_time_bands(plan)


def make_time_bands(plan: Plan) -> Plan:
    """Return the plan with time bands: two ordinary launches for each group of several steps."""
    return replace(plan, steps=tuple(_steps(plan.steps)))


def _steps(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        match step:
            case Launch(kernel) if kernel.time_tile is not None:
                whole = kernel.time_tile
                edges = (row_lags(whole, sign, alone=True) for sign in (-1, 1))
                yield from map(Launch, _Bands(kernel, whole, *edges).kernels())
            case HostLoop(body=body) | HostWhile(body=body):
                yield replace(step, body=tuple(_steps(body)))
            case HostIf(_, then, other):
                yield replace(step, then=tuple(_steps(then)), other=tuple(_steps(other)))
            case _:
                yield step


@dataclass(frozen=True, slots=True)
class RowLags:
    """Rows between something and each nest in the first step, and how many more in each of the next."""

    nests: tuple[int, ...]
    more: int


def row_lags(whole: TemporalTile, sign: int, *, alone: bool) -> RowLags:
    """Return the least number of rows by which each nest has to lag behind those before it.

    With ``sign`` -1 it is ahead of them; ``alone``: also behind everything that it reads.
    """
    nests = tuple(whole.nests)
    arrays = whole.source.keys()

    def rows(before: PointwiseNest, nest: PointwiseNest) -> Iterator[int]:
        yield from (sign * at[0] for array, at in nest.uses(arrays) if array in before.writes)
        yield from (-sign * at[0] for array, at in before.uses(arrays) if array in nest.writes)

    most = {(n, k): max(rows(a, b), default=None) for n, a in enumerate(nests) for k, b in enumerate(nests)}
    between = {pair: least for pair, least in most.items() if least is not None}
    own = [max(0, *(sign * at[0] * alone for _, at in nest.uses(arrays))) for nest in nests]
    for more in count():
        found = list(own)
        for _ in nests:
            for (n, k), least in between.items():
                found[k] = max(found[k], found[n] + least - more * (n >= k))
        if all(found[k] >= found[n] + least - more * (n >= k) for (n, k), least in between.items()):
            return RowLags(tuple(found), more)
    raise AssertionError("far enough apart they are")


@dataclass(frozen=True, slots=True)
class _Bands:
    """``below`` and ``above``: what a band leaves out at its first and its last rows."""

    kernel: Kernel
    whole: TemporalTile
    below: RowLags
    above: RowLags

    def kernels(self) -> tuple[Kernel, Kernel]:
        plain = replace(self.kernel, z_axis=None, time_tile=None, locals=(), scalars=(*self.kernel.scalars, CORES.name))
        least = 2 * (self.last(self.below) + self.last(self.above) + 1)
        number = max_of(min_of(CORES, div(self.whole.extents[0], Const(least))), Const(1))
        band = Loop(BAND.name, Const(0, "int64"), number, (), dtype="int64")
        known = Assign(BANDS, number)
        return (
            replace(plain, axes=(band,), body=(known, *self.band())),
            replace(
                plain, name=f"{plain.name}_between", axes=(replace(band, lo=Const(1, "int64")),),
                body=(known, *self.between()),
            ),
        )  # fmt: skip

    def band(self) -> tuple[Stmt, ...]:
        """Row by row, each step behind the one before. Nothing is left out where no band is beside this one."""
        behind = row_lags(self.whole, 1, alone=False)
        rows = 1 if len(self.whole.shape) > 1 else ELEMENTS
        low, high = Var("first__band", "int64"), Var("end__band", "int64")
        begin, end = self.border(BAND), self.border(add(BAND, _ONE))
        nests = []
        for nest, n, a, b in zip(self.whole.nests, behind.nests, self.below.nests, self.above.nests, strict=True):
            at = add(AT, Const(-n))
            here = max_of(at, add(LOW, Const(a))), min_of(add(at, Const(rows)), add(HIGH, Const(-b)))
            nests.append(_over(here, nest, self.whole))
        moved = ((AT, -behind.more), (LOW, self.below.more), (HIGH, -self.above.more))
        step = replace(self.whole.loop, body=(*nests, *_moved(moved)))
        last = add(high, Const(self.last(behind)))
        every = Loop(
            ROW.name, low, last, (Assign(AT, ROW), Assign(LOW, low), Assign(HIGH, high), step), rows, dtype="int64"
        )
        return (
            Assign(low, Select(Binary(">", BAND, Const(0)), begin, Const(-self.last(self.below), "int64"))),
            Assign(high, Select(Binary("<", add(BAND, _ONE), BANDS), end, add(end, Const(self.last(self.above))))),
            every,
        )

    def between(self) -> tuple[Stmt, ...]:
        """Around the border before the band, step by step."""
        nests = (
            _over((add(LOW, Const(-b)), add(HIGH, Const(a))), nest, self.whole)
            for nest, a, b in zip(self.whole.nests, self.below.nests, self.above.nests, strict=True)
        )
        step = (*nests, *_moved(((LOW, -self.above.more), (HIGH, self.below.more))))
        return (Assign(LOW, self.border(BAND)), Assign(HIGH, LOW), replace(self.whole.loop, body=step))

    def border(self, band: Expr) -> Expr:
        return div(mul(band, self.whole.extents[0]), BANDS)

    def last(self, rows: RowLags) -> int:
        """Return the largest lag of a nest in the last step, in rows."""
        return max(rows.nests) + rows.more * (steps_per_launch(self.whole.loop) - 1)


def _moved(by: Iterable[tuple[Var, int]]) -> Iterator[Stmt]:
    return (Assign(v, add(v, Const(rows))) for v, rows in by if rows)


def _over(rows: Bounds, nest: PointwiseNest, whole: TemporalTile) -> Stmt:
    """Return what the nest does in these rows: outermost dimension first, but for one whose bounds need another."""
    (lo, hi), *others = nest.bounds
    bounds = [(max_of(rows[0], lo), min_of(rows[1], hi)), *others]

    def rule(n: Node) -> Node | None:
        match n:
            case Load(array) if array in whole.source:
                return replace(n, index=tuple(add(point(d), Const(o)) for d, o in enumerate(constant_offset(n))))
        return None

    body = rewrite(rule, nest.body)
    left = dict(enumerate(bounds))
    order: list[int] = []
    while left:
        order.append(next(d for d, b in left.items() if not names_in(b) & {point(e).name for e in left}))
        del left[order[-1]]
    for d in reversed(order):
        body = (Loop(point(d).name, *bounds[d], body),)
    return body[0]
