"""``continue`` and an early ``return`` as conditions: what follows ``if (c) continue;`` runs where c is false."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast


def eliminate_continue(body: c_ast.Block) -> c_ast.Block:
    """Return the loop body without its own ``continue`` statements."""
    return replace(body, items=_rest(body.items, "continue"))


def eliminate_return(items: tuple[c_ast.Item, ...]) -> tuple[c_ast.Item, ...]:
    """Return the statements of a function without the ``return`` statements that are outside loops."""
    return _rest(items, "return")


def _is(item: Any, word: str) -> bool:
    match item:
        case c_ast.Jump(own):
            return own == word
        case c_ast.Return(value):
            if word == "return" and value is not None and not isinstance(value, c_ast.Number):
                message = ("a codelet that returns a value it computes is not accepted: make the function void, and "
                           "write the value through a pointer parameter, `*result = …;`")  # fmt: skip
                raise UnsupportedError(message, item.span)
            return word == "return"
        case _:
            return False


def _has(item: Any, word: str) -> bool:
    match item:
        case c_ast.If(_, then, other):
            return any(_has(i, word) for i in (*then.items, *other.items))
        case c_ast.Block(items):
            return any(_has(i, word) for i in items)
        case _:
            return _is(item, word)


def _rest(items: tuple[c_ast.Item, ...], word: str) -> tuple[c_ast.Item, ...]:
    for k, item in enumerate(items):
        if _is(item, word):
            return items[:k]
        if not _has(item, word):
            continue
        return (*items[:k], *_split(item, items[k + 1 :], word))
    return items


def _split(item: c_ast.Item, after: tuple[c_ast.Item, ...], word: str) -> tuple[c_ast.Item, ...]:
    """``item``, which jumps somewhere, and what follows it, as statements that do not jump."""
    match item:
        case c_ast.Block(items):
            return _rest((*items, *after), word)
        case c_ast.If(cond, then, other):
            leaves_then, leaves_other = _leaves(then, word), _leaves(other, word)
            if after and not leaves_then and not leaves_other:
                message = f"this {word} is nested too deeply: write if (…) {{ … }} around what it skips"
                raise UnsupportedError(message, _place(item, word))
            own_then = then.items if leaves_then else (*then.items, *after)
            own_other = other.items if leaves_other else (*other.items, *after)
            if not leaves_then and not leaves_other:
                own_then, own_other = then.items, other.items
            new_then, new_other = c_ast.Block(_rest(own_then, word)), c_ast.Block(_rest(own_other, word))
            if not new_then.items:
                return (c_ast.If(c_ast.Unary("!", cond, span=cond.span), new_other, new_then, span=item.span),)
            return (c_ast.If(cond, new_then, new_other, span=item.span),)
    raise AssertionError(f"{item} does not jump")


def _leaves(block: c_ast.Block, word: str) -> bool:
    """Tell whether the block ends in the jump, so that nothing after it runs."""
    if not block.items:
        return False
    match block.items[-1]:
        case c_ast.If(_, then, other):
            return _leaves(then, word) and _leaves(other, word)
        case c_ast.Block() as inner:
            return _leaves(inner, word)
        case last:
            return _is(last, word)


def _place(item: Any, word: str) -> Any:
    return next(n.span for n in c_ast.walk(item) if _is(n, word))
