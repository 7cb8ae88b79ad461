"""The conditions under which loops accumulate into a target.

for k: if (i < m) if (A[k] > 0) s[i] += e      i < m, and not always there: data decide
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import has_iteration, is_total
from looptune.ir.nodes import Assign, Const, Expr, If, Load, Loop, Stmt, Unary, Var, While
from looptune.ir.rewrite import conjunction, conjuncts, disjunction, has_load, walk_stmts


@dataclass(frozen=True, slots=True)
class AccumulationGuard:
    """The condition under which loops accumulate into a target.

    ``condition`` holds wherever they do, as far as they do not change it; None stands for always.
    ``always_accumulates``: they accumulate wherever it holds, so that the target is an element there and belongs to no
    other iteration.
    """

    condition: Expr | None
    always_accumulates: bool


def accumulation_guard(loops: Sequence[Loop], target: Var | Load, each: Sequence[Loop] = ()) -> AccumulationGuard:
    """Return when the ``loops`` accumulate into ``target``; ``each`` are inner loops that index it."""
    moving = {f.var for f in walk_stmts(tuple(loops)) if isinstance(f, Loop)} | written_names(loops)
    moving -= {f.var for f in each}
    apart = {f.var for f in each}
    around = [dict.fromkeys(_conditions(f.body, target, (), apart, (f,))) for f in loops]
    if any(asked != around[0] for asked in around):
        around = [dict.fromkeys((*_first(f), *c) for c in asked) for f, asked in zip(loops, around, strict=True)]
    found = dict.fromkeys(hoist_conditions(c, moving) for asked in around for c in asked)
    sure = all(all_lifted for _, all_lifted in found) or ((), True) in found
    if any(not kept for kept, _ in found):
        return AccumulationGuard(None, sure)
    either = dict.fromkeys(conjunction(kept) for kept, _ in found)
    return AccumulationGuard(disjunction(either), sure)


def hoist_conditions(around: Sequence[Expr], moving: Collection[str]) -> tuple[tuple[Expr, ...], bool]:
    """Return the conditions that can be evaluated without ``moving``, and whether these are all.

    The conditions ``around`` a statement are given outermost first.

    A condition that reads an element or divides may be evaluated only where those before it hold.
    """
    kept: dict[Expr, None] = {}
    complete = True
    for condition in (part for c in around for part in conjuncts(c)):
        if names_in(condition).intersection(moving) or has_load(condition) or not (complete or is_total(condition)):
            complete = False
        elif condition != Const(1):
            kept[condition] = None
    return tuple(kept), complete


def _conditions(
    body: Sequence[Stmt],
    target: Var | Load,
    around: tuple[Expr, ...],
    apart: Collection[str],
    loops: tuple[Loop, ...],
) -> Iterator[tuple[Expr, ...]]:
    """Yield the conditions ``around`` each accumulation into ``target``, in ``loops``.

    Those over ``apart`` count as true; an inner loop that may have no iteration is a condition.
    """
    for stmt in body:
        match stmt:
            case Assign(to) if to == target:
                yield around
            case If(cond, then, other):
                yield from _conditions(then, target, (*around, cond), apart, loops)
                yield from _conditions(other, target, (*around, Unary("!", cond)), apart, loops)
            case Loop(body=inner):
                ran = has_iteration(stmt, loops)
                asked = () if ran is None or stmt.var in apart else (ran,)
                yield from _conditions(inner, target, (*around, *asked), apart, (*loops, stmt))
            case While(cond, inner):
                yield from _conditions(inner, target, (*around, cond), apart, loops)


def _first(loop: Loop) -> tuple[Expr, ...]:
    ran = has_iteration(loop, ())
    return () if ran is None else (ran,)
