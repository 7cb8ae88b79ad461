"""Replace array elements that OpenMP's parallel loops accumulate into by scalars, which OpenMP can reduce.

    for i (reduces +: y[k]): y[k] += ...   ==>   if (lo < hi) { y_r = y[k]; for i (reduces +: y_r): ...; y[k] = y_r; }

This is a pass over a scheduled codelet that is written as C, and not part of a plan.
"""

from __future__ import annotations

from dataclasses import replace

from looptune.ir.accumulators import Accumulator, ignores_nan, is_shareable
from looptune.ir.def_use import referenced_names, take_name
from looptune.ir.nodes import Assign, Binary, Codelet, If, Load, Local, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import rewrite
from looptune.lower.accumulation_guards import accumulation_guard


def accumulate_in_scalars(codelet: Codelet) -> Codelet:
    """Return the codelet whose parallel loops accumulate into scalars instead of elements."""
    made: list[Local] = []
    taken = {p.name for p in codelet.params} | {v.name for v in codelet.locals} | referenced_names(codelet.body)
    body = tuple(s for stmt in codelet.body for s in _accumulating(stmt, taken, made))
    used = referenced_names(body)
    return replace(codelet, body=body, locals=tuple(v for v in (*codelet.locals, *made) if v.name in used))


def _accumulating(stmt: Stmt, taken: set[str], made: list[Local]) -> tuple[Stmt, ...]:
    """``stmt`` with elements that a loop to be shared out accumulates into in scalars: OpenMP reduces those."""
    match stmt:
        case Loop() if is_shareable(stmt):
            targets = [r.target for r in stmt.reductions if isinstance(r.target, Load)]
            return (_in_scalars(stmt, targets, taken, made),) if targets else (stmt,)
        case Loop() | While():
            return (replace(stmt, body=tuple(s for x in stmt.body for s in _accumulating(x, taken, made))),)
        case If(_, then, other):
            inner = (tuple(s for x in block for s in _accumulating(x, taken, made)) for block in (then, other))
            return (replace(stmt, then=next(inner), other=next(inner)),)
    return (stmt,)


def _in_scalars(loop: Loop, targets: list[Load], taken: set[str], made: list[Local]) -> Stmt:
    """Return an element that nothing is added to is not touched: there may be none such."""
    own = {t: Var(take_name(f"{t.array}_r", taken), t.dtype) for t in dict.fromkeys(targets)}
    made += [Local(v.name, v.dtype) for v in own.values()]
    sums = [Accumulator(r.op, r.target, own[r.target], own[r.target], ignores_nan(loop, r.target))
            for r in loop.reductions if isinstance(r.target, Load)]  # fmt: skip

    def rule(n: Node) -> Node | None:
        return own.get(n) if isinstance(n, Load) else None

    reduces = tuple(replace(r, target=own[r.target]) if isinstance(r.target, Load) else r for r in loop.reductions)
    inner = replace(rewrite(rule, loop), reductions=reduces)
    before, after = list[Stmt](), list[Stmt]()
    for a in sums:
        where = accumulation_guard((loop,), a.target)
        always = where.always_accumulates and where.condition is None
        before.append(Assign(a.private, a.target if always else a.identity))
        added = Assign(a.target, a.private) if always else a.update
        after.append(added if where.condition is None else If(where.condition, (added,)))
    return If(Binary("<", loop.lo, loop.hi), (*before, inner, *after))
