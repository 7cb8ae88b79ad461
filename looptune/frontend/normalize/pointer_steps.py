"""``*p++ = x`` as two statements: the moves of a pointer inside an expression become statements before or after it.

    *d++ = *s++ + *--q;      ==>      q -= 1; *d = *s + *q; d += 1; s += 1;

A move in a part that C may leave out, and one of a pointer that the expression names again, stay where they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from looptune.frontend import c_ast

Items = tuple[c_ast.Item, ...]


def separate_steps(items: Items, names: Collection[str]) -> Items:
    """Return the statements with the moves of the pointers ``names`` as statements of their own."""
    return tuple(made for item in items for made in _item(item, names))


def _item(item: Any, names: Collection[str]) -> Iterator[Any]:
    match item:
        case c_ast.Evaluate(e):
            yield from (c_ast.Evaluate(part, span=part.span) for part in _effects(e, names))
        case c_ast.Declare(_, _, init) if isinstance(init, c_ast.Expr):
            before, value, after = _separated(init, names)
            yield from _statements(before)
            yield item if value is init else replace(item, init=value)
            yield from _statements(after)
        case c_ast.If(cond, then, other):
            before, value, after = _separated(cond, names)
            yield from _statements(before)
            then, other = _block(then, names), _block(other, names)
            first = tuple(_statements(after))
            yield replace(
                item, cond=value, then=replace(then, items=(*first, *then.items)),
                other=replace(other, items=(*first, *other.items)),
            )  # fmt: skip
        case c_ast.For(init, _, step, body):
            begins = separate_steps(init, names)
            yield replace(item, init=begins, next=_step(step, names), body=_block(body, names))
        case c_ast.While(_, body):
            yield replace(item, body=_block(body, names))
        case c_ast.Block():
            yield _block(item, names)
        case _:
            yield item


def _block(block: c_ast.Block, names: Collection[str]) -> c_ast.Block:
    return replace(block, items=separate_steps(block.items, names))


def _step(e: c_ast.Expr | None, names: Collection[str]) -> c_ast.Expr | None:
    if e is None:
        return None
    parts = tuple(_effects(e, names))
    return parts[0] if len(parts) == 1 else c_ast.Comma(parts, span=e.span)


def _statements(parts: Iterable[c_ast.Expr]) -> Iterator[c_ast.Evaluate]:
    return (c_ast.Evaluate(part, span=part.span) for part in parts)


def _effects(e: c_ast.Expr, names: Collection[str]) -> Iterator[c_ast.Expr]:
    match e:
        case c_ast.Comma(parts):
            for part in parts:
                yield from _effects(part, names)
        case c_ast.Unary("++" | "--", c_ast.Name()):
            yield e
        case _:
            before, value, after = _separated(e, names)
            yield from (*before, value, *after)


def _separated(
    e: c_ast.Expr, names: Collection[str]
) -> tuple[tuple[c_ast.Expr, ...], c_ast.Expr, tuple[c_ast.Expr, ...]]:
    """Return the moves before an expression, the expression without them, and the moves after it."""
    mentioned = Counter(n.name for n in c_ast.walk(e) if isinstance(n, c_ast.Name))
    steps = [
        n for n in _certain(e)
        if isinstance(n, c_ast.Unary) and n.op in ("++", "--") and isinstance(n.arg, c_ast.Name)
        and n.arg.name in names and mentioned[n.arg.name] == 1
    ]  # fmt: skip
    gone = {id(n) for n in steps}

    def rule(node: Any) -> Any:
        return node.arg if id(node) in gone else c_ast.map_children(rule, node)

    def move(n: Any) -> c_ast.Expr:
        return c_ast.Assignment(n.op[0], n.arg, c_ast.Number("1", span=n.span), span=n.span)

    before = tuple(move(n) for n in steps if n.prefix)
    return before, rule(e) if steps else e, tuple(move(n) for n in steps if not n.prefix)


def _certain(e: Any) -> Iterator[Any]:
    """Yield the nodes of an expression that C evaluates in any case."""
    yield e
    match e:
        case c_ast.Ternary(cond):
            yield from _certain(cond)
        case c_ast.Binary("&&" | "||", lhs):
            yield from _certain(lhs)
        case c_ast.Comma():
            return
        case _:
            for child in c_ast.children(e):
                yield from _certain(child)
