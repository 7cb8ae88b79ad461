"""Each array access of a codelet with the loops and the conditions around it.

for i in 0..n: y[i] = i > 0 ? x[i - 1] : 0          x[i - 1]: the loop of i, (i > 0, True)
for i in 0..n: if (i < m && x[i] > 0) y[i] = 1      x[i]: (i < m, True); y[i]: (i < m && x[i] > 0, True)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from looptune.ir.nodes import Assign, Binary, Call, Cast, Codelet, Expr, If, Load, Loop, Select, Stmt, Unary, While


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

    def when(self, cond: Expr, holds: bool) -> _Here:
        return replace(self, conditions=(*self.conditions, (cond, holds)))


def _in(body: Sequence[Stmt], here: _Here) -> Iterator[GuardedLoad]:
    for stmt in body:
        match stmt:
            case Assign(target, value):
                yield from _loads(value, here)
                yield from _loads(target, here)
            case Loop(_, lo, hi, inner):
                yield from _loads(lo, here)
                yield from _loads(hi, here)
                yield from _in(inner, replace(here, around=(*here.around, stmt)))
            case If(cond, then, other):
                yield from _loads(cond, here)
                yield from _in(then, here.when(cond, True))
                yield from _in(other, here.when(cond, False))
            case While(cond, inner):
                yield from _loads(cond, here)
                yield from _in(inner, here)


def _loads(e: Expr, here: _Here) -> Iterator[GuardedLoad]:
    match e:
        case Load(_, index):
            yield GuardedLoad(e, here.around, here.conditions)
            for subscript in index:
                yield from _loads(subscript, here)
        case Select(cond, then, other):
            yield from _loads(cond, here)
            yield from _loads(then, here.when(cond, True))
            yield from _loads(other, here.when(cond, False))
        case Binary("&&" | "||" as op, lhs, rhs):
            yield from _loads(lhs, here)
            yield from _loads(rhs, here.when(lhs, op == "&&"))
        case Binary(_, lhs, rhs):
            yield from _loads(lhs, here)
            yield from _loads(rhs, here)
        case Unary(_, arg) | Cast(_, arg):
            yield from _loads(arg, here)
        case Call(_, args):
            for arg in args:
                yield from _loads(arg, here)
