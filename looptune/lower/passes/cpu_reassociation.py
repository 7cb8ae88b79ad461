"""Mark the sums and products that a CPU's compiler may reorder: those of innermost loops, into one place.

    for j: y[i] = y[i] + A[i][j] * x[j]     ==>     for j: y[i] = plus_in_any_order(y[i], A[i][j] * x[j])

A loop accumulates into a place if every statement of it that mentions the place adds to it, or every one multiplies it,
and the place is the same in all iterations: only its last value is observable, which another order may change by
rounding. What is compensated (``t = s + y; c = (t - s) - y; s = t``), undone (``(x + m) - m``), or read meanwhile is no
such sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from looptune.ir.def_use import names_in, target_name, written_names
from looptune.ir.nodes import Assign, Binary, Call, Codelet, Expr, Load, Loop, Node, Stmt, Var
from looptune.ir.rewrite import has_loop, map_blocks, rewrite_stmts, walk, walk_stmts
from looptune.ir.simplify import is_integer
from looptune.lower.cpu_names import IN_ANY_ORDER
from looptune.lower.passes.cpu_time_bands import make_time_bands
from looptune.lower.plan import Plan, with_kernels
from looptune.poly.access import source_text
from looptune.poly.reassociation import ReorderedReduction
from looptune.poly.reduction import accumulation

if TYPE_CHECKING:
    from looptune.lower.machine import Machine


def reassociate(plan: Plan, machine: Machine) -> Plan:
    """Return the plan with these operations in its kernels, where the machine may reorder them."""
    if not machine.reorder:
        return plan
    return replace(plan, steps=with_kernels(plan.steps, lambda k: replace(k, serial=mark_accumulations(k.serial))))


def mark_accumulations(body: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """Return ``body`` with these operations as calls of ``IN_ANY_ORDER``."""
    return tuple(mark_loop(s) if isinstance(s, Loop) else map_blocks(mark_accumulations, s) for s in body)


def vectorised_sums(codelet: Codelet, plan: Plan) -> tuple[ReorderedReduction, ...]:
    """Return the sums of ``codelet`` that a CPU's compiler may reorder in ``plan``, which is made of it."""
    kernels = make_time_bands(plan).kernels
    bodies = (reduce(lambda body, axis: (replace(axis, body=body),), reversed(k.loops), k.body) for k in kernels)
    loops = (s for body in bodies for s in walk_stmts(body) if isinstance(s, Loop) and not has_loop(s.body))
    mine = {a.name for loop in loops for a in _sums(loop)}
    own = (s for s in walk_stmts(codelet.body) if isinstance(s, Assign) and s.name in mine)
    return tuple(dict.fromkeys(_named(s, found.op) for s in own if (found := accumulation(s)) is not None))


def _named(s: Assign, op: str) -> ReorderedReduction:
    return ReorderedReduction(op, source_text(s.target), s.target.span if s.target.span.line else s.span)


def mark_loop(loop: Loop) -> Loop:
    """Return one loop with the marked operations; see ``mark_accumulations``."""
    if has_loop(loop.body):
        return replace(loop, body=mark_accumulations(loop.body))
    found = set(map(id, _sums(loop)))

    def rule(n: Stmt) -> Stmt | None:
        match n:
            case Assign(target, value) if id(n) in found:
                return replace(n, value=_in_any_order(value, target))
        return None

    return replace(loop, body=rewrite_stmts(rule, loop.body)) if found else loop


def _sums(loop: Loop) -> Iterator[Assign]:
    changing = written_names(loop.body) | {loop.var}
    mentioned = Counter(target_name(n) for n in walk(loop.body) if isinstance(n, Load | Var))
    found: dict[str, list[tuple[str, Assign]]] = {}
    for s in (s for s in walk_stmts(loop.body) if isinstance(s, Assign)):
        op = _op(s)
        if op and not (isinstance(s.target, Load) and names_in(s.target.index) & changing):
            found.setdefault(target_name(s.target), []).append((op, s))
    for name, own in found.items():
        # Each is mentioned twice: where it is read and where it is written.
        if len({op for op, _ in own}) == 1 and mentioned[name] == 2 * len(own):
            yield from (s for _, s in own)


def _op(s: Assign) -> str:
    """How a float is accumulated into, by operations of its own type; "" where it is not."""
    found = None if is_integer(s.target.dtype) else accumulation(s)
    plain = found is not None and found.op in ("+", "*") and _in_any_order(s.value, s.target) != s.value
    return found.op if found is not None and plain else ""


def _in_any_order(value: Expr, x: Node) -> Expr:
    """Return the operations between ``x`` and the whole; as it was where a conversion is among them."""
    match value:
        case Binary(op, lhs, rhs) if op in IN_ANY_ORDER:
            left = any(n == x for n in walk(lhs))
            inner = lhs if left else rhs
            made = inner if inner == x else _in_any_order(inner, x)
            if inner == x or made is not inner:
                return Call(IN_ANY_ORDER[op], (made, rhs) if left else (lhs, made), value.dtype)
    return value
