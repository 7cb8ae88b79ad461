"""Loops whose condition counts: the variable changes at the beginning of the body, and once more after the loop.

    while (n--) *d++ = *s++;       ==>       while (n != 0) { n -= 1; *d++ = *s++; } n -= 1;
    while (--n > 0) x[n] = 0;      ==>       while (n - 1 > 0) { n -= 1; x[n] = 0; } n -= 1;

A loop that something else can end stays as it is: the variable has another value then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import used_names

Items = tuple[c_ast.Item, ...]
_COMPARISONS = ("<", "<=", ">", ">=", "!=")


def move_counting(items: Items) -> Items:
    """Return the statements with the conditions of loops free of ``++`` and ``--``."""
    return tuple(made for item in items for made in _item(item))


def _item(item: Any) -> Iterator[Any]:
    match item:
        case c_ast.Block(items):
            yield replace(item, items=move_counting(items))
        case c_ast.If(_, then, other):
            yield replace(item, then=_block(then), other=_block(other))
        case c_ast.While(cond, body) | c_ast.For(_, cond, _, body):
            inner = _block(body)
            found = None if cond is None or _ends_early(body) or _is_do(item) else _counted(cond)
            if found is None:
                yield replace(item, body=inner)
                return
            plain, step = found
            yield replace(item, cond=plain, body=replace(inner, items=(step, *inner.items)))
            yield step
        case _:
            yield item


def _block(block: c_ast.Block) -> c_ast.Block:
    return replace(block, items=move_counting(block.items))


def _is_do(item: Any) -> bool:
    return isinstance(item, c_ast.While) and item.after


def _ends_early(body: c_ast.Block) -> bool:
    return any(isinstance(n, c_ast.Return) or (isinstance(n, c_ast.Jump) and n.word != "continue")
               for n in c_ast.walk(body))  # fmt: skip


def _counted(cond: c_ast.Expr) -> tuple[c_ast.Expr, c_ast.Evaluate] | None:
    """Return the condition without its step, and the step, or None where the condition is of another kind."""
    match cond:
        case c_ast.Unary("++" | "--") as step:
            value = _value(step)
            plain = None if value is None else c_ast.Binary("!=", value, c_ast.Number("0"), span=cond.span)
        case c_ast.Binary(op, c_ast.Unary("++" | "--") as step, other) if op in _COMPARISONS:
            value = None if _touches(other, step) else _value(step)
            plain = None if value is None else replace(cond, lhs=value)
        case c_ast.Binary(op, other, c_ast.Unary("++" | "--") as step) if op in _COMPARISONS:
            value = None if _touches(other, step) else _value(step)
            plain = None if value is None else replace(cond, rhs=value)
        case _:
            return None
    if plain is None:
        return None
    move = c_ast.Assignment(step.op[0], step.arg, c_ast.Number("1", span=step.span), span=step.span)
    return plain, c_ast.Evaluate(move, span=step.span)


def _touches(other: c_ast.Expr, step: c_ast.Unary) -> bool:
    """Tell whether the other operand names the variable, or changes one itself."""
    changes = any(
        isinstance(n, c_ast.Assignment | c_ast.Call) or (isinstance(n, c_ast.Unary) and n.op in ("++", "--"))
        for n in c_ast.walk(other)
    )
    return changes or bool(used_names((other,)) & used_names((step,)))


def _value(step: c_ast.Unary) -> c_ast.Expr | None:
    """Return the value of a step in terms of the variable before it."""
    if not isinstance(step.arg, c_ast.Name):
        return None
    if not step.prefix:
        return step.arg
    return c_ast.Binary(step.op[0], step.arg, c_ast.Number("1", span=step.span), span=step.span)
