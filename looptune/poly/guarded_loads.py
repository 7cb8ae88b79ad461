"""Each array access of an expression or a codelet with the conditions and the loops around it.

for i in 0..n: y[i] = i > 0 ? x[i - 1] : 0          x[i - 1]: the loop of i, (i > 0, True)
for i in 0..n: if (i < m && x[i] > 0) y[i] = 1      x[i]: (i < m, True); y[i]: (i < m && x[i] > 0, True)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from looptune.ir.nodes import Assign, Binary, Call, Cast, Codelet, Expr, If, Load, Loop, Select, Stmt, Unary, While
from looptune.ir.rewrite import walk


@dataclass(frozen=True, slots=True)
class GuardedLoad:
    """An access inside the loops ``around``, outermost first; ``conditions`` hold where it is evaluated, or do not."""

    load: Load
    around: tuple[Loop, ...]
    conditions: tuple[tuple[Expr, bool], ...]


def guarded_loads(codelet: Codelet) -> Iterator[GuardedLoad]:
    """Yield the accesses of the codelet, those of conditions and bounds of loops as well."""
    return _in(codelet.body, _Here((), ()))


@dataclass(frozen=True, slots=True)
class _Here:
    around: tuple[Loop, ...]
    conditions: tuple[tuple[Expr, bool], ...]

    def with_condition(self, cond: Expr, holds: bool) -> _Here:
        return replace(self, conditions=(*self.conditions, (cond, holds)))


class _Conditional(Protocol):
    """What an expression is evaluated under."""

    def with_condition(self: C, cond: Expr, holds: bool) -> C: ...


C = TypeVar("C", bound=_Conditional)


def evaluates_partly(tree: Any) -> bool:
    """Tell whether C evaluates some operands in the tree only under a condition: those of ``?:``, ``&&`` and ``||``."""
    return any(isinstance(n, Select) or (isinstance(n, Binary) and n.op in ("&&", "||")) for n in walk(tree))


def evaluated_loads(e: Expr, here: C) -> Iterator[tuple[Load, C]]:
    """Yield the loads that the expression evaluates, each with the conditions under which it is evaluated."""
    match e:
        case Select(cond, then, other):
            yield from evaluated_loads(cond, here)
            yield from evaluated_loads(then, here.with_condition(cond, True))
            yield from evaluated_loads(other, here.with_condition(cond, False))
        case Binary("&&" | "||" as op, lhs, rhs):
            yield from evaluated_loads(lhs, here)
            yield from evaluated_loads(rhs, here.with_condition(lhs, op == "&&"))
        case Binary(_, lhs, rhs):
            yield from evaluated_loads(lhs, here)
            yield from evaluated_loads(rhs, here)
        case Unary(_, arg) | Cast(_, arg):
            yield from evaluated_loads(arg, here)
        case Call(_, args):
            for arg in args:
                yield from evaluated_loads(arg, here)
        case Load(_, index):
            yield e, here
            for subscript in index:
                yield from evaluated_loads(subscript, here)


def _accesses(e: Expr, here: _Here) -> Iterator[GuardedLoad]:
    for load, reached in evaluated_loads(e, here):
        yield GuardedLoad(load, reached.around, reached.conditions)


def _in(body: Sequence[Stmt], here: _Here) -> Iterator[GuardedLoad]:
    for stmt in body:
        match stmt:
            case Assign(target, value):
                yield from _accesses(value, here)
                yield from _accesses(target, here)
            case Loop(_, lo, hi, inner):
                yield from _accesses(lo, here)
                yield from _accesses(hi, here)
                yield from _in(inner, replace(here, around=(*here.around, stmt)))
            case If(cond, then, other):
                yield from _accesses(cond, here)
                yield from _in(then, here.with_condition(cond, True))
                yield from _in(other, here.with_condition(cond, False))
            case While(cond, inner):
                yield from _accesses(cond, here)
                yield from _in(inner, here)
