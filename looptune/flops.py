"""How many floating-point operations a codelet does at given sizes: what GFLOP/s are counted from.

Additions, subtractions, multiplications, divisions and math functions of the original loops, one each. In a sum
``x += a * e`` a factor that no loop around changes can be taken out of the sum and is not counted, so that
``C += alpha * A * B`` counts two, as everyone counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from looptune.ir import Assign, Bin, Call, Cast, Const, Expr, If, Loop, Stmt, Un, Var, While
from looptune.plans import value
from looptune.rewrite import walk
from looptune.scope import names_in, written
from looptune.simplify import is_integer

LARGEST = 200_000
"""Loop iterations looked at one by one, where inner bounds depend on them, before giving up."""


def count(body: Sequence[Stmt], sizes: Mapping[str, int]) -> int | None:
    """The operations of one run, None where it depends on data or takes too long to count."""
    changed = written(body)
    try:
        return _block(body, dict(sizes), [LARGEST], lambda assign: operations(assign, changed))
    except (KeyError, AssertionError, _TooMany):
        return None


def statements(body: Sequence[Stmt], sizes: Mapping[str, int], limit: int) -> int | None:
    """The assignments of one run, or ``limit`` where there are more to look at; None where it depends on data."""
    try:
        return min(limit, _block(body, dict(sizes), [limit], lambda _: 1))
    except _TooMany:
        return limit
    except (KeyError, AssertionError):
        return None


class _TooMany(Exception):
    """More iterations than are looked at one by one."""


Cost = Callable[[Assign], int]


def _block(body: Sequence[Stmt], env: dict[str, int], left: list[int], cost: Cost) -> int:
    return sum(_stmt(s, env, left, cost) for s in body)


def _stmt(stmt: Stmt, env: dict[str, int], left: list[int], cost: Cost) -> int:
    match stmt:
        case Assign():
            return cost(stmt)
        case Loop(var, lo, hi, body, step):
            trips = range(value(lo, env), value(hi, env), step)
            if not _varies(body, var):
                return len(trips) * _block(body, {**env, var: 0}, left, cost) if trips else 0
            left[0] -= len(trips)
            if left[0] < 0:
                raise _TooMany
            return sum(_block(body, {**env, var: i}, left, cost) for i in trips)
        case If(cond, then, other):
            return _block(then if value(cond, env) else other, env, left, cost)
        case While():
            raise KeyError("a while loop's trips depend on data")


def _varies(body: Sequence[Stmt], var: str) -> bool:
    """The number of operations in ``body`` depends on ``var``: through a bound or a condition."""
    for node in walk(tuple(body)):
        match node:
            case Loop(_, lo, hi) if var in names_in((lo, hi)):
                return True
            case If(cond) if var in names_in(cond):
                return True
    return False


def operations(assign: Assign, changed: Collection[str]) -> int:
    """``changed``: what loops set, which is no factor to be taken out."""
    total = sum(_costs(n) for n in walk(assign.value))
    match _plain(assign.value):
        case Bin("+" | "-", lhs, rhs) if _plain(lhs) == assign.target:
            return total - _factors(_plain(rhs), changed)
    return total


def is_operation(n: object) -> bool:
    return _costs(n) > 0


def _costs(n: object) -> int:
    match n:
        case Bin("+" | "-" | "*" | "/", lhs):
            return int(not is_integer(lhs.dtype))
        case Call(_, _, dtype):
            return int(not is_integer(dtype))
    return 0


def _factors(e: Expr, changed: Collection[str]) -> int:
    """The constant factors of a product."""
    match e:
        case Bin("*", lhs, rhs):
            return sum(_is_factor(x, changed) + _factors(x, changed) for x in (_plain(lhs), _plain(rhs)))
    return 0


def _is_factor(e: Expr, changed: Collection[str]) -> bool:
    match e:
        case Var(name):
            return name not in changed and not is_integer(e.dtype)
        case Const():
            return not is_integer(e.dtype)
    return False


def _plain(e: Expr) -> Expr:
    match e:
        case Cast(_, arg):
            return _plain(arg)
        case Un("-", arg):
            return _plain(arg)
    return e
