"""Give the sums of a matrix product to the tensor cores of a GPU: strips of its factors, warps, and what is left.

    for k: s = s + A[i][k] * B[k][j]        ==>        the product of the strips of A and B, and for each element
                                                         s = s + the sum

The sums are complete before anything else is done in an iteration of the grid: what is done before the loop must not
change what the products read. A sum of several products takes each of them in turn. Factors that depend on neither of
the grid's loops belong to the left one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from looptune.core.errors import DirectiveError, InfeasibleDirective
from looptune.ir.def_use import names_in, target_name, written_names
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import (
    Assign,
    Binary,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Loop,
    Node,
    Stmt,
    Unary,
    Var,
)
from looptune.ir.rewrite import conjunction, has_load, rewrite, rewrite_stmts, substitute, walk, walk_stmts
from looptune.ir.simplify import add, min_of, mul, sub
from looptune.lower.fragments import BlockShape, Fragment, checked
from looptune.lower.host_loops import outermost_loops_where
from looptune.lower.passes.flat_arrays import flat_index
from looptune.lower.plan import Kernel, Plan, host_loops, kernels_in, with_kernels
from looptune.lower.staged_tiles import staging_loops
from looptune.lower.tiles import FIRST, WIDE
from looptune.lower.warp_tiles import COLUMN, ROW, TILES, StripOperand, WarpProduct, WarpTiles
from looptune.schedule.directives.tensor import TensorTile

if TYPE_CHECKING:
    from looptune.lower.machine import Machine

NAME = TensorTile.word
BEFORE = "scalar-replacement"
"""The pass after which a plan is checked."""


def make_warp_tiles(plan: Plan, machine: Machine) -> Plan:
    """Return the plan whose kernels with such a loop have warps compute its products.

    Raises DirectiveError on a target without tensor cores, and where the loop is none that they compute.
    """

    def made(kernel: Kernel) -> Kernel:
        loops = _asked(kernel.body)
        if not loops:
            return kernel
        said = f"{NAME} of loop {loops[0].var}"
        if not machine.blocks:
            raise DirectiveError(f"{said} needs the tensor cores of an NVIDIA GPU: leave it out for this target",
                                 loops[0].span)  # fmt: skip
        try:
            return _Tiling(kernel, plan).run()
        except InfeasibleDirective as no:
            raise DirectiveError(f"{said}: {no}", loops[0].span) from None

    return replace(plan, steps=with_kernels(plan.steps, made))


def check(codelet: Codelet, plan: Callable[[], Plan]) -> None:
    """Raise InfeasibleDirective where tensor cores cannot compute what a loop adds; ``plan`` is that of the codelet.

    It is the plan as it is before this pass.
    """
    found = tuple(outermost_loops_where(codelet.body, lambda f: f.annotation(TensorTile) is not None))
    if not found:
        return
    whole = plan()
    for kernel in whole.kernels:
        for inner in _asked(kernel.body):
            own = next((f for f, _ in found if f.number == inner.number), found[0][0])
            try:
                _Tiling(kernel, whole).run()
            except InfeasibleDirective as no:
                raise InfeasibleDirective(own, str(no)) from None
            if any(kernel is k for loop in host_loops(whole.steps) if loop.blocks_per_sm for k in kernels_in((loop,))):
                raise InfeasibleDirective(own, "its launches are merged by a loop around it: leave out persistent")


def _asked(body: tuple[Stmt, ...]) -> list[Loop]:
    return [f for f in walk_stmts(body) if isinstance(f, Loop) and f.annotation(TensorTile) is not None]


Target = Var | Load


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a sum: its factors in their order."""

    target: Target
    negative: bool
    factors: tuple[Expr, ...]


@dataclass(slots=True)
class _Tiling:
    kernel: Kernel
    plan: Plan
    conditional: bool = False
    dtype: str = "float64"
    known: Mapping[str, Expr] = field(default_factory=dict)
    """The values of locals that are computed once, before the loop."""

    def run(self) -> Kernel:
        """Return the kernel with its tiles; raises InfeasibleDirective where it has none."""
        kernel, (loop, *more) = self.kernel, _asked(self.kernel.body)
        if more:
            raise InfeasibleDirective(more[0], f"loop {loop.var} in the same kernel has it as well: distribute them")
        self.check_kernel(loop)
        before = self.preceding(loop)
        self.known = self.values(before)
        terms = tuple(t for stmt in loop.body for t in self.terms(stmt, loop))
        said = loop.annotation(TensorTile)
        assert said is not None, "a directive asks for it"
        self.dtype = "float32" if said.form else "float64"
        self.check_values(loop, terms, before)
        shape = BlockShape(Fragment(*said.shape), *said.block, *said.warp, said.strip)
        assert checked(shape), f"{shape} does not compute each term once"
        products, buffer, targets = self.products(terms, loop, shape)
        negative = tuple(all(t.negative for t in terms if t.target == target) for target in targets)
        tiles = WarpTiles(
            shape, said.stages, self.dtype, self.whole(loop, shape), products, buffer, len(targets), (),
            split=said.split, rounded=said.rounded, tolerance=said.tolerance,
        )  # fmt: skip
        kernel = replace(kernel, block=(tiles.threads, 1))
        body, within = _unguarded(self.epilogue(loop, targets, negative, tiles))
        tiles = replace(tiles, body=body, within=within, updated=tuple(_updated(body)))
        return replace(kernel, warp_tiles=tiles)

    def check_kernel(self, loop: Loop) -> None:
        kernel = self.kernel
        if kernel.team is not None or kernel.keeps_tiles or kernel.makes_parts:
            raise InfeasibleDirective(loop, "its kernel is one in which threads share sums or steps in another way")
        if len(kernel.axes) != 2:
            had = f"{len(kernel.axes)} parallel loop{'s' * (len(kernel.axes) != 1)}"
            raise InfeasibleDirective(loop, f"it needs two parallel loops around it, and its grid has {had}")
        if staging_loops((*kernel.loops, *walk(kernel.body))):
            raise InfeasibleDirective(loop, "it copies strips of its own to shared memory: leave out stage")

    @property
    def row(self) -> Loop:
        return self.kernel.axes[0]

    @property
    def column(self) -> Loop:
        return self.kernel.axes[1]

    def preceding(self, loop: Loop) -> tuple[Stmt, ...]:
        """Return what an iteration of the grid does before the loop, and note whether it runs under a condition."""
        found = self._preceding(self.kernel.body, loop)
        if found is None:
            raise InfeasibleDirective(loop, "a loop around it is run by the thread, and not by the grid")
        return found

    def _preceding(self, body: tuple[Stmt, ...], loop: Loop) -> tuple[Stmt, ...] | None:
        for k, stmt in enumerate(body):
            if stmt is loop:
                return body[:k]
            if isinstance(stmt, If):
                for branch in (stmt.then, stmt.other):
                    inside = self._preceding(branch, loop)
                    if inside is not None:
                        self.conditional = True
                        return (*body[:k], *inside)
        return None

    def values(self, before: tuple[Stmt, ...]) -> dict[str, Expr]:
        """Return what the locals hold that only one statement before the loop assigns, such as an element."""
        made = [s for s in walk_stmts(self.kernel.body) if isinstance(s, Assign)]
        often = Counter(target_name(s.target) for s in made)
        found: dict[str, Expr] = {}
        for s in walk_stmts(before):
            if isinstance(s, Assign) and isinstance(s.target, Var) and often[s.target.name] == 1:
                found[s.target.name] = substitute(s.value, found)
        return found

    def terms(self, stmt: Stmt, loop: Loop) -> Iterator[_Term]:
        """Yield the terms that a statement of the loop adds."""
        if not isinstance(stmt, Assign):
            raise InfeasibleDirective(loop, "it contains more than assignments: leave out what unrolls or tiles it")
        found = list(_signed(substitute(stmt.value, self.known), False))
        own = [f for f in found if f == (False, stmt.target)]
        if len(own) != 1 or loop.var in names_in(stmt.target):
            raise InfeasibleDirective(loop, "it does more than to add products")
        found.remove(own[0])
        for negative, value in found:
            factors, minus = _factors(value)
            yield _Term(stmt.target, negative != minus, factors)

    def check_values(self, loop: Loop, terms: Sequence[_Term], before: tuple[Stmt, ...]) -> None:
        """Raise InfeasibleDirective where the sums would not be those of the loop if they are computed first."""
        for bound in (loop.lo, loop.hi):
            self.slope(bound, loop)
        computed = {v.name for v in self.kernel.locals} & written_names(self.kernel.body)
        used = names_in((loop.lo, loop.hi, *(f for t in terms for f in t.factors)))
        if used & computed:
            raise InfeasibleDirective(loop, f"it uses {min(used & computed)}, which its thread computes")
        targets = {t.target for t in terms}
        kept = {s.target for s in walk_stmts(self.kernel.body) if isinstance(s, Assign) and s.value in targets}
        for stmt in walk_stmts(before):
            if isinstance(stmt, Assign) and target_name(stmt.target) in used and stmt.target not in targets | kept:
                raise InfeasibleDirective(loop, f"{target_name(stmt.target)} is written before it and read in it")
        for dtype in sorted({n.dtype for t in terms for n in (t.target, *t.factors)}):
            if dtype != self.dtype:
                remedy = "; tf32x3, tf32 and bf16 are for floats"
                kinds = ("doubles", remedy) if self.dtype == "float64" else ("floats", "")
                raise InfeasibleDirective(loop, f"it adds products of {kinds[0]}, and here is a {dtype}{kinds[1]}")

    def slope(self, bound: Expr, loop: Loop) -> tuple[Loop, int] | None:
        """Return the loop of the grid on which a bound depends, and by how much; None if it is the same for a block.

        Raises InfeasibleDirective where it is no multiple of the loop's variable and something that does not change.
        """
        on = [axis for axis in (self.row, self.column) if axis.var in names_in(bound)]
        if not on:
            return None
        terms, _ = affine_terms(bound)
        own = Var(on[0].var, on[0].dtype)
        others = {name for term in terms if term != own for name in names_in(term)}
        if len(on) > 1 or own not in terms or own.name in others or (loop.step, on[0].step) != (1, 1):
            raise InfeasibleDirective(loop, f"its bounds depend on {on[-1].var}, a loop of the grid, in a way that "
                                      "the strips of a block cannot follow")  # fmt: skip
        return on[0], terms[own]

    def whole(self, loop: Loop, shape: BlockShape) -> Loop:
        """Return the header of the loop for all elements of a block: from the least start to the greatest end."""

        def extreme(bound: Expr, least: bool) -> Expr:
            found = self.slope(bound, loop)
            if found is None:
                return bound
            axis, by = found
            first = Var(axis.var + FIRST, axis.dtype)
            side = shape.rows if axis is self.row else shape.columns
            end = sub(axis.hi, Const(1, axis.dtype))
            last = min_of(add(first, Const(side - 1, axis.dtype)), end)
            return substitute(bound, {axis.var: first if (by > 0) == least else last})

        return replace(loop, lo=extreme(loop.lo, True), hi=extreme(loop.hi, False), body=())

    def bounded(self, axis: Loop, loop: Loop) -> Iterator[Expr]:
        """Yield the conditions on the iterations that an element along an axis has of those of its block."""
        counter = Var(loop.var, loop.dtype)
        for op, bound in ((">=", loop.lo), ("<", loop.hi)):
            found = self.slope(bound, loop)
            if found is not None and found[0] is axis:
                yield Binary(op, counter, bound)

    def products(
        self, terms: Sequence[_Term], loop: Loop, shape: BlockShape
    ) -> tuple[tuple[WarpProduct, ...], int, tuple[Target, ...]]:
        """Return the products, the elements of their strips, and the targets of their sums."""
        targets = tuple(dict.fromkeys(t.target for t in terms))
        made: dict[tuple[bool, Expr], StripOperand] = {}
        found, size = [], 0
        for term in terms:
            negative = term.negative and not all(t.negative for t in terms if t.target == term.target)
            sides = []
            for own, value in enumerate(self.sides(term, loop, negative)):
                axis, side = ((self.row, shape.rows), (self.column, shape.columns))[own]
                key = (bool(own), value)
                if key not in made:
                    made[key] = self.operand(axis, value, side, loop, shape.strip, size)
                    size += made[key].pitch * (side if made[key].along else shape.strip)
                sides.append(made[key])
            found.append(WarpProduct(targets.index(term.target), *sides))
        return tuple(found), size, targets

    def sides(self, term: _Term, loop: Loop, negative: bool) -> tuple[Expr, Expr]:
        """Return the factor of the row, and that of the column."""
        rows: list[Expr] = []
        columns: list[Expr] = []
        for factor in term.factors:
            on = names_in(factor) & {self.row.var, self.column.var}
            if len(on) > 1:
                raise InfeasibleDirective(loop, f"a factor depends on both {self.row.var} and {self.column.var}")
            (columns if self.column.var in on else rows).append(factor)
        one = Const(1.0, self.dtype)
        rows, columns = rows or [one] * _single(self.row), columns or [one] * _single(self.column)
        of_row = _single(self.row) or any(self.row.var in names_in(f) for f in rows)
        if not columns or not of_row:
            raise InfeasibleDirective(
                loop, f"a term is no product of a factor with {self.row.var} and one with {self.column.var}"
            )
        left, right = (reduce(lambda a, b: Binary("*", a, b), some) for some in (rows, columns))
        return Unary("-", left) if negative else left, right

    def operand(self, axis: Loop, value: Expr, side: int, loop: Loop, strip: int, offset: int) -> StripOperand:
        """Return how a factor is copied to its strip."""
        loads = [n for n in walk(value) if isinstance(n, Load)]
        flat: Expr = rewrite(self.flat, value)
        plain = flat if isinstance(flat, Load) and len(loads) == 1 else None
        places, constant = affine_terms(flat.index[0]) if isinstance(flat, Load) else ({}, 0)
        along = not _adjacent(places, axis) or _adjacent(places, loop)
        minor, length = (loop, strip) if along else (axis, side)
        lanes = WIDE // np.dtype(self.dtype).itemsize
        vector = lanes if plain is not None and _adjacent(places, minor) and not constant % lanes else 1
        others = (k for t, k in places.items() if t != Var(minor.var, minor.dtype))
        if any(k % lanes for k in others) or not _even(minor, lanes) or any(self.bounded(axis, loop)):
            vector = 1
        if self.conditional and plain is not None and not self.whole_rows(loads[0], lanes):
            vector = 1
        within = tuple(c for n in loads for c in self.inside(n, loop)) if self.conditional else ()
        within = (*self.bounded(axis, loop), *within)
        return StripOperand(axis, flat, plain, side, along, _pitch(length, self.dtype, along), offset, vector, within)

    def whole_rows(self, load: Load, lanes: int) -> bool:
        """Return whether the rows of an array are multiples of a number, so that a vector exists as a whole."""
        match self.plan.array(load.array).shape[-1]:
            case Const(int(extent)):
                return extent % lanes == 0
        return False

    def flat(self, n: Node) -> Node | None:
        return Load(n.array, (flat_index(n, self.plan),), n.dtype) if isinstance(n, Load) and len(n.index) > 1 else None

    def inside(self, load: Load, loop: Loop) -> Iterator[Expr]:
        """Yield the conditions under which an element exists, where the loop runs under one that implies them."""
        for place, extent in zip(load.index, self.plan.array(load.array).shape, strict=True):
            if extent is None:
                raise InfeasibleDirective(loop, f"it runs under a condition, and the extents of {load.array} are not "
                                          "declared, which it would read in any case")  # fmt: skip
            yield Binary(">=", place, Const(0, place.dtype))
            yield Binary("<", place, extent)

    def epilogue(
        self, loop: Loop, targets: Sequence[Target], negative: Sequence[bool], tiles: WarpTiles
    ) -> tuple[Stmt, ...]:
        """Return what is done for each element, with its sums in shared memory."""

        def rule(stmt: Stmt) -> tuple[Stmt, ...] | None:
            return tuple(added) if isinstance(stmt, Loop) and stmt.annotation(TensorTile) is not None else None

        row, size = mul(ROW, Const(tiles.sum_pitch)), tiles.shape.rows * tiles.sum_pitch
        places = (add(add(row, Const(n * size)), COLUMN) for n in range(len(targets)))
        sums = [Load(TILES, (place,), tiles.dtype) for place in places]
        added: list[Stmt] = [
            Assign(target, Binary("-" if minus else "+", target, found))
            for target, minus, found in zip(targets, negative, sums, strict=True)
        ]
        # A part of what is not finite is no number, nor is it times a zero beyond a bound: such sums are the loop's.
        # So are infinite ones where the greatest floats are rounded to infinity.
        if tiles.split or tiles.rounded or (tiles.loop.lo, tiles.loop.hi) != (loop.lo, loop.hi):
            zero = [Binary("-", found, found) if tiles.rounded else found for found in sums]
            finite = conjunction([Binary("==", z, z) for z in zero])
            added = [If(finite, tuple(added), (loop.without(TensorTile),))]
        made: tuple[Stmt, ...] = rewrite(self.flat, rewrite_stmts(rule, self.kernel.body))
        return made


def _unguarded(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], tuple[Expr, ...]]:
    """Return the statements inside of conditions on positions, and these conditions."""
    match body:
        case (If(cond, then, ()),) if not has_load(cond):
            inside, conditions = _unguarded(then)
            return inside, (cond, *conditions)
    return body, ()


def _updated(body: tuple[Stmt, ...]) -> Iterator[Load]:
    """Yield the elements that the statements change in any case, and read before, by one subscript each.

    Another iteration of the grid neither reads nor writes them, since it may run at the same time.
    """
    computed = written_names(body)
    changed = (s.target for s in body if isinstance(s, Assign) and isinstance(s.target, Load))
    for own in dict.fromkeys(changed):
        loads = {n for n in walk(body) if isinstance(n, Load) and n.array == own.array}
        first = next(s for s in body if own in walk(s))
        overwrites = isinstance(first, Assign) and first.target == own and own not in walk(first.value)
        if loads == {own} and not overwrites and not names_in(own.index) & computed:
            yield own


def _signed(e: Expr, negative: bool) -> Iterator[tuple[bool, Expr]]:
    """Yield the terms of a sum, each with whether it is subtracted."""
    match e:
        case Binary("+", lhs, rhs):
            yield from (*_signed(lhs, negative), *_signed(rhs, negative))
        case Binary("-", lhs, rhs):
            yield from (*_signed(lhs, negative), *_signed(rhs, not negative))
        case Unary("-", arg):
            yield from _signed(arg, not negative)
        case _:
            yield negative, e


def _factors(e: Expr) -> tuple[tuple[Expr, ...], bool]:
    """Return the factors of a product, and whether it is negated."""
    match e:
        case Binary("*", lhs, rhs):
            (a, minus), (b, other) = _factors(lhs), _factors(rhs)
            return (*a, *b), minus != other
        case Unary("-", arg):
            factors, minus = _factors(arg)
            return factors, not minus
    return (e,), False


def _adjacent(places: Mapping[Expr, int], loop: Loop) -> bool:
    """Return whether consecutive iterations of the loop access consecutive elements."""
    own = Var(loop.var, loop.dtype)
    return loop.step == 1 and places.get(own) == 1 and all(loop.var not in names_in(t) for t in places if t != own)


def _even(loop: Loop, lanes: int) -> bool:
    """Return whether the loop begins and ends at multiples of a number."""
    match loop.lo, loop.hi:
        case Const(int(lo)), Const(int(hi)):
            return not (lo % lanes or hi % lanes)
    return False


def _single(axis: Loop) -> bool:
    """Return whether the loop has one iteration, whose variable no subscript has any more."""
    match axis.lo, axis.hi:
        case Const(int(lo)), Const(int(hi)):
            return hi - lo <= axis.step
    return False


def _pitch(length: int, dtype: str, along: bool) -> int:
    """Return how far rows are apart, so that lanes that read at the same time read from different banks.

    Of doubles, half a warp reads four rows at four places each, from 16 banks of 8 bytes; of floats, a warp reads eight
    rows at four places each, or four rows at eight places, from 32 banks.
    """
    period, fitting = (16, (4, 12)) if dtype == "float64" else (8, (4,)) if along else (32, (8, 24))
    return next(n for n in range(length, length + period + 1) if n % period in fitting)
