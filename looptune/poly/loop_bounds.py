"""Bounds of loops in another order: the iterations are projected onto the first loops, which bounds the next one.

for i in 0..n:  for j in i..n        {[i, j] : 0 <= i <= j < n}
onto j         0 <= j < n            for j in 0..n:
onto j, i      0 <= i <= j             for i in 0..j + 1

Several bounds become ``max`` and ``min``. Conditions that the bounds cannot express (iterations that are not a convex
set, a stride that another variable decides) become guards in the innermost loop: see
``BoundedNest.remaining_conditions``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd
from typing import TYPE_CHECKING

import islpy as isl

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Binary, Cast, Const, Expr, Loop, Var
from looptune.ir.rewrite import substitute
from looptune.ir.simplify import add, div, is_lossless_index_cast, max_of, min_of, mod, mul, sub
from looptune.poly.affine import name
from looptune.poly.coalesce import coalesce
from looptune.poly.delinearization import polynomial
from looptune.poly.domain import IterationDomains
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit

if TYPE_CHECKING:
    from looptune.poly.loop_context import LoopContext


@dataclass(frozen=True, slots=True, eq=False)
class BoundedNest:
    """Loops, outermost first and without bodies, that run at least the iterations asked for."""

    loops: tuple[Loop, ...]
    _within: _Within
    _runs: isl.Set

    def remaining_conditions(self, conditions: Iterable[Expr]) -> tuple[Expr, ...]:
        """Return the ``conditions`` that isl cannot show to hold in every iteration of the loops."""
        return tuple(signed(c) for c in conditions if not self._holds(c))

    def _holds(self, c: Expr) -> bool:
        try:
            with isl_operation_limit(QUESTION):
                return bool(self._runs.is_subset(self._within.where([c])))
        except IslLimitExceeded:
            return False


def signed(e: Expr) -> Expr:
    """Return the condition in integers that do not wrap.

    It is evaluated also outside the iterations for which it was written.
    """
    match e:
        case Binary(op, lhs, rhs) if lhs.dtype.startswith("u"):
            return Binary(op, _wide(lhs), _wide(rhs))
    return e


def _wide(e: Expr) -> Expr:
    match e:
        case Const(value):
            return Const(value, "int64")
        case Binary(op, lhs, rhs):
            return Binary(op, _wide(lhs), _wide(rhs))
        case Cast(dtype, arg) if is_lossless_index_cast(dtype, arg.dtype):
            return _wide(arg)
    return Cast("int64", e)


def can_be_bounded(reach: LoopContext, loops: Sequence[Loop]) -> bool:
    """Return whether the bounds of the loops are affine in the sizes, the loops around and each other."""
    within = _Within.of(reach, loops)
    return all(within.condition(c) is not None for f in loops for c in iteration_conditions(f))


def iteration_conditions(loop: Loop) -> tuple[Expr, ...]:
    """Return the conditions that hold for the variable in an iteration of ``loop``."""
    var = Var(loop.var, loop.dtype)
    found = [Binary(">=", var, e) for e in _parts("max", loop.lo)] + [
        Binary("<", var, e) for e in _parts("min", loop.hi)
    ]
    if loop.step > 1:
        found.append(Binary("==", Binary("%", sub(var, loop.lo), Const(loop.step, loop.dtype)), Const(0, loop.dtype)))
    return tuple(found)


def _parts(op: str, e: Expr) -> tuple[Expr, ...]:
    match e:
        case Binary(this, lhs, rhs) if this == op:
            return (*_parts(op, lhs), *_parts(op, rhs))
    return (e,)


def bounded_nest(
    reach: LoopContext, loops: Sequence[Loop], asked: Sequence[Sequence[Expr]], count: int = 0
) -> BoundedNest:
    """Return the ``loops``, in their new order, with bounds.

    They cover all iterations that satisfy one of the lists of conditions.

    Only the first ``count`` of them where that is not 0. The bounds they come with, which can be analysed, may depend
    on each other in any way. IslLimitExceeded where isl gives up.
    """
    with isl_operation_limit(QUESTION):
        return _nested(_Within.of(reach, loops), loops, asked, count)


def _nested(within: _Within, loops: Sequence[Loop], asked: Sequence[Sequence[Expr]], count: int) -> BoundedNest:
    found: list[Loop] = []
    strides = _strides(within, loops)
    plain = [[c for c in conditions if not _is_stride(c)] for conditions in asked]
    box = coalesce(within.any_of(plain))
    # Where nothing is asked for, outer loops may do as they like: the inner ones are empty.
    around = coalesce(within.onto(box, 0))
    for k, loop in enumerate(loops[:count] if count else loops):
        whole = coalesce(within.onto(box, k + 1))
        found.append(_bounded(within, loop, whole, around, strides.get(loop.var)))
        around = whole
    runs = within.where([c for f in found for c in iteration_conditions(f)])
    wanted = within.any_of(asked)
    assert wanted.is_subset(runs), f"loops {', '.join(f.var for f in found)} leave out iterations"
    return BoundedNest(tuple(found), within, runs)


@dataclass(frozen=True, slots=True, eq=False)
class _Within:
    """The loops and what is around them, to isl.

    ``dims`` are the variables around and those of the loops, ``outer`` how many are around, ``enclosing_conditions``
    what holds of those, ``variables`` what the code calls them and the sizes. A set has the first of the dims, all or
    some.
    """

    nest: IterationDomains
    dims: tuple[str, ...]
    outer: int
    enclosing_conditions: str
    variables: Mapping[str, Expr]

    @staticmethod
    def of(reach: LoopContext, loops: Sequence[Loop]) -> _Within:
        dims, given = reach.place
        variables: dict[str, Expr] = {name(v.name): v for v in reach.parameters}
        variables |= reach.nest.terms.found
        variables |= {name(f.var): Var(f.var, f.dtype) for f in (*reach.enclosing_loops, *loops)}
        return _Within(reach.nest, (*dims, *(name(f.var) for f in loops)), len(dims), given, variables)

    def condition(self, e: Expr) -> str | None:
        match e:
            case Binary("==", Binary("%", inner, Const(int(step))), Const(0)):
                text = self.nest.affine(inner, self.dims)
                return None if text is None else f"({text}) mod {step} = 0"
            case Binary(op, lhs, rhs):
                a, b = self.nest.affine(lhs, self.dims), self.nest.affine(rhs, self.dims)
                return None if a is None or b is None else f"{a} {'=' if op == '==' else op} {b}"
        return None

    def where(self, conditions: Iterable[Expr]) -> isl.Set:
        """Return { [dims] : the loops are reached, and the conditions hold }."""
        return self.set(len(self.dims), [self.enclosing_conditions, *(f"({self.condition(c)})" for c in conditions)])

    def any_of(self, lists: Iterable[Iterable[Expr]]) -> isl.Set:
        """Where all of one list hold; nowhere without a list."""
        return reduce(isl.Set.union, map(self.where, lists), self.set(len(self.dims), ["false"]))

    def set(self, count: int, conditions: Iterable[str]) -> isl.Set:
        given = " and ".join(c for c in conditions if c) or "true"
        sizes = ", ".join(self.nest.parameters)
        return isl.Set(f"[{sizes}] -> {{ [{', '.join(self.dims[:count])}] : {given} }}")

    def onto(self, box: isl.Set, count: int) -> isl.Set:
        """Return { [dims around, the first ``count`` loops] : the others have some value }."""
        first = self.outer + count
        return box.project_out(isl.dim_type.set, first, len(self.dims) - first)

    def holds(self, on: isl.Set, a: Expr, op: str, b: Expr) -> bool:
        """Tell whether the comparison holds in all of the set."""
        condition = self.condition(Binary(op, a, b))
        return condition is not None and on.is_subset(self.set(on.dim(isl.dim_type.set), [condition]))


def _is_stride(c: Expr) -> bool:
    match c:
        case Binary("==", Binary("%"), Const(0)):
            return True
    return False


def _bounded(within: _Within, loop: Loop, whole: isl.Set, around: isl.Set, stride: _Stride | None) -> Loop:
    """``loop`` over the last dimension of ``whole``; ``around`` is the set without it."""
    if whole.is_empty():
        # Conditions around it contradict each other.
        return replace(loop, lo=Const(0, loop.dtype), hi=Const(0, loop.dtype), step=1, body=())
    last = around.dim(isl.dim_type.set)
    part = coalesce(whole.gist(around.insert_dims(isl.dim_type.set, last, 1)))
    hull = isl.Set.from_basic_set(part.simple_hull())
    pieces = [hull] if hull.is_subset(part) else [isl.Set.from_basic_set(b) for b in part.get_basic_sets()]
    lows: list[Expr] = []
    highs: list[Expr] = []
    for piece in pieces:
        ends = _ends(within, piece, around, last, loop.dtype)
        if ends is None:
            # What the loops around imply was left out, and a piece may need it.
            ends = _ends(within, piece.intersect(whole), around, last, loop.dtype)
        assert ends is not None, f"{loop.var} has no bounds"
        lows.append(_one(within, around, ends[0], max_of, ">="))
        highs.append(_one(within, around, ends[1], min_of, "<="))
    outer = names_in(tuple(within.variables[d] for d in within.dims[:last] if d in within.variables))
    lo = _one(within, around, lows, min_of, "<=")
    hi = _one(within, around, highs, max_of, ">=")
    lo, hi = (_as_written(within, around, outer, *pair) for pair in ((lo, loop.lo), (hi, loop.hi)))
    if stride is None:
        return replace(loop, lo=lo, hi=hi, step=1, body=())
    return replace(loop, lo=stride.aligned(within, around, lo), hi=hi, step=stride.step, body=())


def _one(within: _Within, on: isl.Set, ends: Sequence[Expr], op: Callable[[Expr, Expr], Expr], best: str) -> Expr:
    """Return the least or greatest of the expressions, without those that another one always beats."""
    kept = list(dict.fromkeys(ends))
    for e in tuple(kept):
        if any(within.holds(on, o, best, e) for o in kept if o is not e):
            kept.remove(e)
    return reduce(op, kept)


def _as_written(within: _Within, on: isl.Set, outer: Collection[str], made: Expr, written: Expr) -> Expr:
    """Return what stands in the text, where it has the same value and names no loop further in."""
    counters = names_in(tuple(v for d, v in within.variables.items() if d in within.dims))
    # Outside its iterations an unsigned bound may wrap.
    inner = counters if written.dtype.startswith("u") else counters - set(outer)
    same = not names_in(written) & inner and within.holds(on, made, "==", written)
    return written if same else made


def _ends(
    within: _Within, piece: isl.Set, around: isl.Set, last: int, dtype: str
) -> tuple[list[Expr], list[Expr]] | None:
    """Lower bounds and (exclusive) upper bounds of the last dimension, in terms of those before it."""
    lows: dict[str, Expr] = {}
    highs: dict[str, Expr] = {}
    for basic in piece.remove_divs().get_basic_sets():
        for c in basic.remove_redundancies().get_constraints():
            factor = c.get_coefficient_val(isl.dim_type.set, last).to_python()
            rest = _rest(within, c, last) if factor else None
            if rest is None:
                continue
            for sign in (1, -1) if c.is_equality() else (1,):
                by, lower = abs(factor), sign * factor > 0
                e = {v: (-sign if lower else sign) * k for v, k in rest.items()}
                e[""] += by - 1 if lower else by  # ceil(e / by), or floor(e / by) + 1
                made = _quotient(within, around, e, by, dtype)
                (lows if lower else highs)[str(made)] = made
    if not lows or not highs:
        return None
    return [lows[k] for k in sorted(lows)], [highs[k] for k in sorted(highs)]


Linear = Mapping[str, int]
"""Coefficients by isl name; "" is the constant."""


def _rest(within: _Within, c: isl.Constraint, last: int) -> dict[str, int] | None:
    """Return the constraint without its last dimension, or None where it is made of what the code has no name for."""
    found = {"": c.get_constant_val().to_python()}
    for kind, names in ((isl.dim_type.param, within.nest.parameters), (isl.dim_type.set, within.dims[:last])):
        for k, v in enumerate(names):
            value = c.get_coefficient_val(kind, k).to_python()
            if value:
                found[v] = value
    return found if all(v in within.variables for v in found if v) else None


def _quotient(within: _Within, on: isl.Set, e: Linear, by: int, dtype: str) -> Expr:
    """floor(e / by), where C's division goes toward zero."""
    plain = all(c >= 0 and (not v or within.variables[v].dtype == dtype) for v, c in e.items())
    wide = "int64" if dtype.startswith("u") and not plain else dtype
    made, factor = affine_expression(e, within.variables, wide), Const(by, wide)
    if by > 1:
        if not within.holds(on, made, ">=", Const(0, wide)):
            made = sub(made, mod(add(mod(made, factor), factor), factor))
        made = div(made, factor)
    return made if wide == dtype else Cast(dtype, max_of(made, Const(0, wide)))


def affine_expression(e: Linear, variables: Mapping[str, Expr], dtype: str) -> Expr:
    """Return a linear form as code.

    Positive terms come first, loop variables before sizes, then negative terms, then the constant.
    """

    def term(v: str, c: int) -> Expr:
        var: Expr = variables[v]
        var = var if var.dtype == dtype else Cast(dtype, var)
        return mul(Const(c, dtype), var)

    ranked = sorted((v for v in e if v), key=lambda v: -list(variables).index(v))
    made: Expr | None = None
    for v in (v for v in ranked if e[v] > 0):
        made = term(v, e[v]) if made is None else add(made, term(v, e[v]))
    constant: Expr = Const(e.get("", 0), dtype)
    if made is None:
        made, constant = constant, Const(0, dtype)
    for v in (v for v in ranked if e[v] < 0):
        made = sub(made, term(v, -e[v]))
    return add(made, constant)


# -- strides ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stride:
    """A loop's values are ``residue``, plus multiples of ``step``."""

    residue: Linear
    step: int
    dtype: str

    def aligned(self, within: _Within, on: isl.Set, lo: Expr) -> Expr:
        """Return the first of the values that is not below ``lo``."""
        match lo:
            case Binary("min", lhs, rhs):
                return min_of(self.aligned(within, on, lhs), self.aligned(within, on, rhs))
            case Binary("max", lhs, rhs):
                return max_of(self.aligned(within, on, lhs), self.aligned(within, on, rhs))
        start = _linear(within, lo)
        if start is not None and all(
            (self.residue.get(v, 0) - start.get(v, 0)) % self.step == 0 for v in {*self.residue, *start}
        ):
            return lo
        step, residue = Const(self.step, self.dtype), affine_expression(self.residue, within.variables, self.dtype)
        apart = sub(residue, lo)
        ahead = within.holds(on, apart, ">=", Const(0, self.dtype))
        return add(lo, mod(apart if ahead else add(mod(apart, step), step), step))


def _linear(within: _Within, e: Expr) -> Linear | None:
    found = polynomial(substitute(e, within.nest.known))
    if found is None or any(len(m) > 1 or (m and m[0] not in within.variables) for m in found):
        return None
    return {"": 0, **{m[0] if m else "": c for m, c in found.items()}}


def _strides(within: _Within, loops: Sequence[Loop]) -> dict[str, _Stride]:
    """By the innermost variable that each step's condition is on: at most one for each, the others are left to ask."""
    found: dict[str, _Stride] = {}
    places = {name(f.var): f for f in loops}
    for loop in (f for f in loops if f.step > 1 and not f.dtype.startswith("u")):
        rest = _linear(within, sub(Var(loop.var, loop.dtype), loop.lo))
        if rest is None:
            continue
        last = next(v for v in reversed(places) if rest.get(v, 0) % loop.step)
        if places[last].var in found or gcd(rest[last], loop.step) > 1:
            continue
        inverse = pow(rest[last], -1, loop.step)
        residue = {v: _near(-inverse * c, loop.step, v) for v, c in rest.items() if v != last}
        found[places[last].var] = _Stride(residue, loop.step, places[last].dtype)
    return found


def _near(c: int, step: int, v: str) -> int:
    """Return the number nearest to 0 that leaves the same rest."""
    c %= step
    return c - step if v and 2 * c > step else c
