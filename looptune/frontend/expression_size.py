"""How much an expression is written out: what is used twice counts twice, though it is one object here.

g0(x) = x * x;  g1(x) = g0(g0(x));  ...      g30 would be a thousand million operations
"""

from __future__ import annotations

from looptune.ir.nodes import Binary, Call, Cast, Expr, Load, Select, Unary

MOST_NODES = 20_000
"""Of one expression."""


def nodes(e: Expr, known: dict[int, tuple[Expr, int]]) -> int:
    """``known`` remembers what was counted, by id, and keeps it alive."""
    if id(e) not in known:
        known[id(e)] = (e, 1 + sum(nodes(part, known) for part in _parts(e)))
    return known[id(e)][1]


def _parts(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Binary(_, lhs, rhs):
            return lhs, rhs
        case Unary(_, arg) | Cast(_, arg):
            return (arg,)
        case Select(cond, then, other):
            return cond, then, other
        case Call(_, args):
            return args
        case Load(_, index):
            return index
    return ()
