"""Statements that are an expression of GNU C, ``({ int t = a; t * t; })``: their value, and jumps that leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from looptune.frontend import c_ast as s

if TYPE_CHECKING:
    from looptune.core.source import Span

_SAID = ("({ … }), which is GNU C,", "its statements and an expression")
"""What is said where they are not supported: its name, and what to write instead."""


def statement_expression(body: s.Block, parts: tuple[s.Expr, ...], span: Span) -> s.StatementExpression:
    """Return statements that are an expression; of those that a jump leaves only the ``parts`` are kept."""
    if _is_left(body) or not isinstance(_last_of(body), s.Evaluate):
        return s.StatementExpression(*_SAID, parts, span=span)
    return s.StatementExpression(*_SAID, (), _with_value_last(body), span=span)


def _is_left(node: Any, in_loop: bool = False) -> bool:
    """Tell whether a jump may lead out of statements, or between them, other than to the end of a loop in them."""
    match node:
        case s.Jump("break" | "continue"):
            return not in_loop
        case s.Jump() | s.Return() | s.Label() | s.Switch():
            return True
    inside = in_loop or isinstance(node, s.For | s.While)
    return any(_is_left(child, inside) for child in s.children(node))


def _last_of(block: s.Block) -> s.Item | None:
    """Return the last statement; that of a block in the last place, since ``({ … });`` was read as a block."""
    match block.items:
        case (*_, s.Block() as last):
            return _last_of(last)
        case (*_, last):
            return last
    return None


def _with_value_last(block: s.Block) -> s.Block:
    """Return a block whose last statement has its value: a block there is an expression of its own."""
    match block.items:
        case (*items, s.Block(span=span) as last):
            value = s.StatementExpression(*_SAID, (), _with_value_last(last), span=span)
            return s.Block((*items, s.Evaluate(value, span=span)), span=block.span)
    return block
