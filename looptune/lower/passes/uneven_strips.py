"""Strips of sums of which threads need different parts: none that a block does not need, and few conditions.

    for s in 0 .. m/16:                              for s in 0 .. min(m/16, (last i of the block + 15) / 16):
      tiles                                            tiles
      for k in 0 .. 16:                      ==>       if (16*s + 15 < i) for k in 0 .. 16: r += A[i][16*s + k] * ..
        if (16*s + k < i)                              else for k in 0 .. 16: if (16*s + k < i) r += ..
          r += A[i][16*s + k] * ..

``box`` gives all threads of a block the same iterations of a loop, so that they reach its tiles together; what a thread
does not need is under a condition. Here the strips are left out that no thread of a block needs. In most of the others,
all threads need all iterations, and a version without the conditions runs, in which ``if_conversion`` takes away those
that do not depend on the iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from looptune.ir.def_use import names_in
from looptune.ir.intervals import affine_terms, never_negative
from looptune.ir.nodes import Annotations, Assign, Binary, Const, Expr, If, Loop, Stmt, Var
from looptune.ir.rewrite import conjunction, conjuncts, rewrite_stmts, substitute, walk_stmts
from looptune.ir.simplify import add, div, max_of, min_of, mul, overflows_never, sub
from looptune.lower.passes.if_conversion import if_convert
from looptune.lower.passes.loop_normalization import max_trip_count, normalize_loop
from looptune.lower.plan import Kernel, Plan
from looptune.lower.staged_tiles import staged_tiles, with_copies_made
from looptune.lower.tiles import FIRST, ONCE

MOST_TESTS = 4
"""Conditions that hold in all iterations of a strip: to evaluate more of them would cost what it saves."""


def shorten_strips(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel without the strips that a block does not need, and with two versions of the others."""
    if kernel.team is not None or kernel.time_tile is not None or kernel.warp_tiles is not None:
        return kernel
    found: dict[str, _Strip] = {}

    def bare(stmt: Stmt) -> Stmt | None:
        match stmt:
            case Loop(body=(Loop() as inner,)):
                strip = _strip(kernel, stmt, inner, len(found))
                if strip is not None:
                    found[strip.whole] = strip
                    return replace(stmt, body=(strip.without_conditions(),))
        return None

    body = rewrite_stmts(bare, kernel.body)
    if not found:
        return kernel
    converted = if_convert(replace(kernel, body=body), plan)

    def versioned(stmt: Stmt) -> Stmt | None:
        match stmt:
            case Loop(body=(Loop(var) as inner,)) if var in found:
                return found[var].versioned(stmt, inner)
        return None

    return replace(converted, body=rewrite_stmts(versioned, converted.body))


Form = tuple[tuple[tuple[Expr, int], ...], int]
"""Multiples of terms, and a constant."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """``strips * s + steps * k + rest < 0`` in iteration k of strip s."""

    strips: int
    steps: int
    rest: Form


@dataclass(frozen=True, slots=True)
class _Strip:
    """A loop of a strip, from 0, that a loop over ``strips`` runs; ``conditions`` are those of each of its statements.

    ``count`` iterations are a whole strip; ``left`` is how many there are if they may be fewer. ``whole``: the variable
    of a whole strip until its conditions are converted.
    """

    kernel: Kernel
    strips: Loop
    loop: Loop
    count: int
    left: Expr | None
    conditions: tuple[tuple[_Condition, ...], ...]
    whole: str

    def without_conditions(self) -> Loop:
        """Return the version in which all statements run in all iterations."""
        own = {self.loop.var: Var(self.whole, self.loop.dtype)}
        body = tuple(substitute(s, own) for s in _unconditional(self.loop.body, self.loop.var))
        return replace(self.loop, var=self.whole, hi=Const(self.count, self.loop.hi.dtype), body=body)

    def versioned(self, strips: Loop, whole: Loop) -> Loop:
        """Return the loop over the strips with both versions, in which elements of a tile have the same subscripts."""
        own = {self.whole: Var(self.loop.var, self.loop.dtype)}
        whole = replace(whole, var=self.loop.var, body=tuple(substitute(s, own) for s in whole.body))
        some, every = with_copies_made(self.loop), with_copies_made(whole)
        test = conjunction(self.tests())
        made = Loop(ONCE, Const(0), Const(1), (If(test, (every,), (some,)),), span=self.loop.span,
                    annotations=Annotations((staged_tiles(self.loop),)))  # fmt: skip
        return replace(strips, lo=self.first(), hi=self.end(), body=(made,))

    def tests(self) -> Iterator[Expr]:
        """Yield what has to hold of a thread and a strip so that all iterations run all statements."""
        if self.left is not None:
            yield Binary(">=", self.left, Const(self.count, self.left.dtype))
        strip = Var(self.strips.var, self.strips.dtype)
        for (terms, strips), constant in _extremes(
            ((c.rest[0], c.strips), c.rest[1] + max(0, c.steps * (self.count - 1)))
            for conditions in self.conditions for c in conditions
        ).items():  # fmt: skip
            more, less = _sides((*terms, (strip, strips)), constant[1])
            yield Binary("<", more, less)

    def end(self) -> Expr:
        """Return the end of the strips that some thread of the block needs."""
        return min_of(self.strips.hi, end) if (end := self._bound(upper=True)) is not None else self.strips.hi

    def first(self) -> Expr:
        """Return the first strip that some thread of the block needs."""
        counted = self.strips.step == 1 and never_negative(self.strips.lo, ())  # a negative quotient is rounded up
        start = self._bound(upper=False) if counted else None
        return self.strips.lo if start is None else max_of(self.strips.lo, start)

    def _bound(self, *, upper: bool) -> Expr | None:
        """Return a bound of the strips that some thread needs, or None if there is none.

        ``strips * s + least < 0`` for the thread with the least rest: s is below (strips - 1 - least) / strips, or from
        (least - strips) / -strips on, where a division of what is negative gives 0 or less.
        """
        found = []
        for conditions in self.conditions:
            bound = next((c for c in conditions if (c.strips > 0) == upper), None)
            if bound is None:
                return None
            terms, constant = self._least(bound.rest)
            found.append(((terms, bound.strips), constant + min(0, bound.steps * (self.count - 1))))
        ends = []
        for (terms, strips), (least, _) in _extremes(found).items():
            by = abs(strips)
            more, less = _sides(terms, least)
            end = add(sub(less, more), Const(by - 1)) if upper else add(sub(more, less), Const(by))
            ends.append(div(end, Const(by)))
        return reduce(max_of if upper else min_of, ends)

    def _least(self, rest: Form) -> Form:
        """Return the least value of a form in a block."""
        axes = {axis.var: (axis, self.kernel.threads(dim)) for dim, axis in self.kernel.grid_axes if dim != "z"}
        terms, constant = dict(rest[0]), rest[1]
        for term, factor in rest[0]:
            if isinstance(term, Var) and term.name in axes:
                axis, threads = axes[term.name]
                del terms[term]
                terms[Var(axis.var + FIRST, axis.dtype)] = factor
                constant += min(0, factor * axis.step * (threads - 1))
        return tuple(terms.items()), constant


def _strip(kernel: Kernel, strips: Loop, loop: Loop, number: int) -> _Strip | None:
    """Return the strip that a loop is whose statements have conditions on the iteration, or None."""
    if not staged_tiles(loop).arrays or strips.step < 1 or loop.step != 1:
        return None
    inner = normalize_loop(loop)
    count = max_trip_count(inner)
    match inner.hi:
        case Const(int(end)) if end == count:
            left = None
        case Binary("min", Const(int(end)), rest) | Binary("min", rest, Const(int(end))) if end == count:
            left = rest
        case _:
            return None
    given = list(_conditions(inner.body, ()))
    if not given or inner.lo != Const(0, inner.dtype) or any(isinstance(s, Loop) for s in walk_stmts(inner.body)):
        return None
    found = []
    for conditions in given:
        own = [_condition(c, strips.var, inner.var) for c in conditions if inner.var in names_in(c)]
        known = [c for c in own if c is not None]
        if not known or len(known) < len(own) or not all(_same(kernel, c) for c in known):
            return None
        found.append(tuple(known))
    made = _Strip(kernel, strips, inner, count, left, tuple(found), f"{inner.var}_{number}__tile")
    return made if len(list(made.tests())) <= MOST_TESTS else None


def _conditions(body: tuple[Stmt, ...], given: tuple[Expr, ...]) -> Iterator[tuple[Expr, ...]]:
    """Yield the conditions of each statement."""
    for stmt in body:
        match stmt:
            case If(cond, then, ()):
                yield from _conditions(then, (*given, *conjuncts(cond)))
            case Assign():
                yield given
            case _:
                yield ()


def _unconditional(body: tuple[Stmt, ...], var: str) -> Iterator[Stmt]:
    """Yield the statements under the conditions that do not name the variable."""
    for stmt in body:
        match stmt:
            case If(cond, then, ()):
                inside = tuple(_unconditional(then, var))
                left = [c for c in conjuncts(cond) if var not in names_in(c)]
                if left:
                    yield replace(stmt, cond=conjunction(left), then=inside)
                else:
                    yield from inside
            case _:
                yield stmt


def _condition(cond: Expr, strip: str, step: str) -> _Condition | None:
    """Return a comparison of sums of integers that cannot overflow; None for anything else."""
    match cond:
        case Binary("<" | "<=", less, more) | Binary(">" | ">=", more, less):
            if not (overflows_never(less.dtype) and overflows_never(more.dtype)):
                return None
            (low, c), (high, d) = affine_terms(less), affine_terms(more)
            terms = {t: low.get(t, 0) - high.get(t, 0) for t in (*low, *high)}
            by = {t.name: terms.pop(t) for t in [*terms] if isinstance(t, Var) and t.name in (strip, step)}
            if by.get(step) and by.get(strip) and not names_in(tuple(terms)) & {strip, step}:
                rest = tuple((t, k) for t, k in terms.items() if k)
                return _Condition(by[strip], by[step], (rest, c - d - (cond.op in ("<=", ">="))))
    return None


def _same(kernel: Kernel, condition: _Condition) -> bool:
    """Tell whether a condition names the variables of threads only in multiples, and nothing that they compute."""
    own = {axis.var for dim, axis in kernel.grid_axes if dim != "z"}
    others = [t for t, _ in condition.rest[0] if not (isinstance(t, Var) and t.name in own)]
    return not names_in(tuple(others)) & (own | {v.name for v in kernel.locals})


Key = tuple[tuple[tuple[Expr, int], ...], int]


def _extremes(found: Iterable[tuple[Key, int]]) -> Mapping[Key, tuple[int, int]]:
    """Return the least and the greatest constant of each form."""
    extremes: dict[tuple[frozenset[tuple[Expr, int]], int], tuple[Key, int, int]] = {}
    for key, constant in found:
        same = frozenset(key[0]), key[1]
        _, low, high = extremes.get(same, (key, constant, constant))
        extremes[same] = key, min(low, constant), max(high, constant)
    return {key: (low, high) for key, low, high in extremes.values()}


def _sides(terms: Iterable[tuple[Expr, int]], constant: int) -> tuple[Expr, Expr]:
    """Return two sums without negative factors whose difference is the form."""
    more: Expr = Const(max(0, constant))
    less: Expr = Const(max(0, -constant))
    for term, factor in terms:
        if factor > 0:
            more = add(mul(Const(factor), term), more)
        elif factor < 0:
            less = add(mul(Const(-factor), term), less)
    return more, less
