"""The bounding box of a loop: its range over all iterations of the loops around it, with a guard in the body.

for i in 0..n: for j in i..m: S(j)    ==>    for i in 0..n: for j in 0..m: if (j >= i) S(j)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Binary, Cast, Const, Expr, If, Loop, Var
from looptune.ir.rewrite import conjunction
from looptune.ir.simplify import div, fold, mul, sub, widens


def rectangular_hull(loop: Loop, outer: Loop) -> Loop | None:
    """Return the loop with bounds that do not depend on ``outer``, or None where it has no such bounds."""
    found = bounds(loop, (outer,))
    return None if found is None else guarded_between(loop, *found)


def bounds(loop: Loop, around: Sequence[Loop]) -> tuple[Expr, Expr] | None:
    """Return bounds of the loop that hold in every iteration of the loops ``around``, or None if none are found.

    ``around`` is ordered outermost first.
    """
    lo, hi = loop.lo, loop.hi
    for outer in reversed(around):
        if loop.step > 1 and outer.var in names_in(lo):
            return None
        least, most = _extreme(lo, outer, greatest=False), _extreme(hi, outer, greatest=True)
        if least is None or most is None:
            return None
        lo, hi = least, most
    return lo, hi


def guarded_between(loop: Loop, lo: Expr, hi: Expr) -> Loop:
    """Return the loop from ``lo`` to ``hi``, which contain its own bounds. A condition for these is around its body."""
    var = Var(loop.var, loop.dtype)
    asked = [Binary(">=", var, loop.lo)] if lo != loop.lo else []
    asked += [Binary("<", var, loop.hi)] if hi != loop.hi else []
    body = (If(conjunction(asked), loop.body),) if asked else loop.body
    return replace(loop, lo=lo, hi=hi, body=body)


def _extreme(e: Expr, outer: Loop, *, greatest: bool) -> Expr | None:
    """Return a bound of ``e`` over all iterations of ``outer``, or None if ``e`` is not known to be monotonic in it."""
    match e:
        case _ if outer.var not in names_in(e):
            return e
        case Var():
            return sub(outer.hi, Const(1, outer.dtype)) if greatest else outer.lo
        case Cast(dtype, arg) if widens(dtype, arg.dtype):
            at = _extreme(arg, outer, greatest=greatest)
            return None if at is None else fold(Cast(dtype, at))
        case Binary("*", Const(int(k)), x) | Binary("*", x, Const(int(k))):
            at = _extreme(x, outer, greatest=greatest == (k >= 0))
            return None if at is None else mul(Const(k, e.dtype), at)
        case Binary("/", x, Const(int(k)) as per) if k > 0:
            at = _extreme(x, outer, greatest=greatest)
            return None if at is None else div(at, per)
        case Binary("+" | "-" | "min" | "max" as op, lhs, rhs):
            a, b = _extreme(lhs, outer, greatest=greatest), _extreme(rhs, outer, greatest=greatest != (op == "-"))
            return None if a is None or b is None else fold(Binary(op, a, b))
    return None
