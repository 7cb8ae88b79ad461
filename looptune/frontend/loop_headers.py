"""``for`` headers: recognise counted loops, and bring them into half-open form.

for (i = a; i < b;  i += 2)  ->  i = a .. b step 2
for (i = a; i <= b; i += s)  ->  i = 0 .. (b + 1 - a + s - 1) / s   with a + i * s for i
for (i = a; i >= b; i--)     ->  i = 0 .. a - b + 1                 with a - i for i
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from looptune.core.source import NOWHERE, Span
from looptune.frontend import c_ast
from looptune.frontend.name_resolution import assigned_names, used_names
from looptune.ir.nodes import Binary, Const, Expr, Select, Var
from looptune.ir.simplify import add, div, max_of, min_of, mul, sub

_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!=", "==": "=="}


@dataclass(frozen=True, slots=True)
class Limit:
    """The condition ``var op bound``; ``subtracted`` is taken from the bound: ``i + e < n`` is ``i < n - e``."""

    op: str
    bound: c_ast.Expr
    subtracted: tuple[tuple[str, c_ast.Expr], ...] = ()
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Header:
    """A counted loop.

    ``start`` is None where the variable keeps the value it has; ``before`` runs first and ``after`` at the end of each
    iteration.
    """

    var: str
    start: c_ast.Expr | None
    declared: c_ast.Declare | None
    limits: tuple[Limit, ...]
    down: bool
    step: c_ast.Expr
    before: tuple[c_ast.Item, ...]
    after: tuple[c_ast.Item, ...]


def loop_header(loop: c_ast.For) -> Header | None:
    """Return the header of a counted loop, as far as its syntax determines it, or None for any other loop."""
    if loop.cond is None or loop.next is None:
        return None
    parts = loop.next.parts if isinstance(loop.next, c_ast.Comma) else (loop.next,)
    for k, part in enumerate(parts):
        update = _update(part)
        if update is None:
            continue
        var, down, step = update
        limits = _limits(loop.cond, var)
        after = tuple(c_ast.Evaluate(p, span=p.span) for j, p in enumerate(parts) if j != k)
        if limits is None or not _stays(loop, var, limits, step, after):
            continue
        start, declared, before = _start(loop.init, var)
        return Header(var, start, declared, limits, down, step, before, after)
    return None


def _update(e: Any) -> tuple[str, bool, c_ast.Expr] | None:
    """(variable, counts down, step) of ``i++``, ``i -= s``, ``i = i + s`` and ``i = s + i``."""
    match e:
        case c_ast.Unary("++" | "--" as op, c_ast.Name(name)):
            return name, op == "--", c_ast.Number("1", span=e.span)
        case c_ast.Assignment("+" | "-" as op, c_ast.Name(name), step):
            return name, op == "-", step
        case c_ast.Assignment("", c_ast.Name(name), c_ast.Binary("+" | "-" as op, c_ast.Name(same), step)) if (
            same == name
        ):
            return name, op == "-", step
        case c_ast.Assignment("", c_ast.Name(name), c_ast.Binary("+", step, c_ast.Name(same))) if same == name:
            return name, False, step
        case _:
            return None


def _limits(cond: c_ast.Expr, var: str) -> tuple[Limit, ...] | None:
    match cond:
        case c_ast.Binary("&&", lhs, rhs):
            a, b = _limits(lhs, var), _limits(rhs, var)
            return None if a is None or b is None else a + b
        case c_ast.Binary("<" | ">" | "<=" | ">=" | "!=" as op, lhs, rhs):
            for side, other, relation in ((lhs, rhs, op), (rhs, lhs, _MIRROR[op])):
                less = _offset(side, var)
                if less is not None and var not in used_names((other, *(e for _, e in less))):
                    return (Limit(relation, other, less, cond.span),)
    return None


def _offset(e: c_ast.Expr, var: str) -> tuple[tuple[str, c_ast.Expr], ...] | None:
    """Return what is added to ``var`` in ``e``, or None where ``e`` is more than that."""
    match e:
        case c_ast.Name(name) if name == var:
            return ()
        case c_ast.Binary("+" | "-" as op, lhs, rhs):
            inner = _offset(lhs, var)
            if inner is not None:
                return (*inner, (op, rhs))
            inner = _offset(rhs, var) if op == "+" else None
            return None if inner is None else (*inner, ("+", lhs))
        case _:
            return None


def _stays(loop: c_ast.For, var: str, limits: Sequence[Limit], step: c_ast.Expr, after: Sequence[c_ast.Item]) -> bool:
    """Neither the variable nor what bounds it is written by an iteration."""
    written = assigned_names((loop.body, *after))
    read = used_names([limit.bound for limit in limits] + [e for limit in limits for _, e in limit.subtracted] + [step])
    side_effects = assigned_names((loop.cond, step))
    return var not in written and not (written & read) and not side_effects and var not in used_names((step,))


def _start(
    init: tuple[c_ast.Item, ...], var: str
) -> tuple[c_ast.Expr | None, c_ast.Declare | None, tuple[c_ast.Item, ...]]:
    """Return the first value of ``var``, its declaration where that is here, and the other initialisations.

    The others run before the value is computed. Where those after it read ``var``, as in ``j = 0, i = j``, or write
    what the value is computed from, it is one of them, and ``var`` keeps the value that they leave.
    """
    flat: list[c_ast.Item] = []
    for item in init:
        match item:
            case c_ast.Evaluate(c_ast.Comma(parts)):
                flat += [c_ast.Evaluate(p, span=p.span) for p in parts]
            case _:
                flat.append(item)
    for k, item in enumerate(flat):
        match item:
            case c_ast.Declare(name, c_ast.Basic(), value) if name == var and isinstance(value, c_ast.Expr):
                declared: c_ast.Declare | None = item
            case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), value)) if name == var:
                declared = None
            case _:
                continue
        later = [_with_value(i, var, value) for i in flat[k + 1 :]]
        written = assigned_names(later)
        if var in used_names(later) or var in written or written & used_names((value,)):
            break
        return value, declared, (*flat[:k], *later)
    return None, None, tuple(flat)


def _with_value(item: c_ast.Item, var: str, value: c_ast.Expr) -> c_ast.Item:
    """Return a statement with the value for ``var``, where it is 0 or 1, which every type holds."""
    if not (isinstance(value, c_ast.Number) and value.text in ("0", "1")) or var in assigned_names((item,)):
        return item

    def rule(node: Any) -> Any:
        return value if node == c_ast.Name(var) else c_ast.map_children(rule, node)

    made: c_ast.Item = rule(item)
    return made


@dataclass(frozen=True, slots=True)
class CanonicalLoop:
    """The loop ``counter = lo .. hi step``.

    ``value`` is the user's variable in terms of the counter, ``last`` its value after the loop. ``never_negative``: the
    loop ends before the user's variable is negative.
    """

    lo: Expr
    hi: Expr
    step: int
    value: Expr
    last: Expr
    never_negative: bool = False


def canonicalize(
    counter: Var, start: Expr, limits: Sequence[tuple[str, Expr]], down: bool, step: Expr
) -> CanonicalLoop | None:
    """Return the half-open form of the loop.

    ``limits`` are pairs of a relation and a bound, all of the counter's signed type.

    None where the direction and the relation do not fit: such a loop runs not at all or for ever. A step that is no
    constant may be negative: a loop that begins at its end or beyond runs not at all whatever the step.
    """
    one = Const(1, counter.dtype)
    known = int(step.value) if isinstance(step, Const) else None
    if known is not None and known < 0:
        down, known = not down, -known
        step = Const(known, counter.dtype)
    if known == 0:
        return None
    ends: list[Expr] = []
    for op, bound in limits:
        if op == "!=" and known == 1:
            op = ">" if down else "<"
        if op[0] != (">" if down else "<"):
            return None
        exclusive = bound if len(op) == 1 else (sub(bound, one) if down else add(bound, one))
        ends.append(exclusive)
    end = reduce(max_of if down else min_of, ends)
    if not down and known is not None:
        return CanonicalLoop(start, end, known, counter, _after(start, start, end, known))
    zero = Const(0, counter.dtype)
    span = sub(start, end) if down else sub(end, start)
    if known is not None:
        offset: Expr = counter
        trips, stride = span, known
        last = _after(zero, zero, span, known)
    else:
        count = div(sub(add(span, step), one), step)
        trips, stride = Select(Binary("<", end, start) if down else Binary("<", start, end), count, zero), 1
        offset = mul(counter, step)
        last = mul(max_of(zero, trips), step)
    move = sub if down else add
    ends_above = down and any(isinstance(e, Const) and e.value >= -1 for e in ends)
    return CanonicalLoop(zero, trips, stride, move(start, offset), move(start, last), ends_above)


def _after(start: Expr, lo: Expr, hi: Expr, step: int) -> Expr:
    """Return the first of ``lo, lo + step, …`` that is not below ``hi``."""
    if step == 1:
        return max_of(lo, hi)
    by = Const(step, lo.dtype)
    trips = div(add(sub(hi, lo), sub(by, Const(1, lo.dtype))), by)
    return add(start, mul(max_of(Const(0, lo.dtype), trips), by))
