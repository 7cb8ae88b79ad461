"""Statements that are an expression of GNU C, ``({ int t = a; t * t; })``: their value, and jumps that leave them."""

from __future__ import annotations

from typing import Any

from looptune.frontend import c_ast as s


def is_left(node: Any, in_loop: bool = False) -> bool:
    """Tell whether a jump may lead out of statements, or between them, other than to the end of a loop in them."""
    match node:
        case s.Jump("break" | "continue"):
            return not in_loop
        case s.Jump() | s.Return() | s.Label() | s.Switch():
            return True
    inside = in_loop or isinstance(node, s.For | s.While)
    return any(is_left(child, inside) for child in s.children(node))


def last_of(block: s.Block) -> s.Item | None:
    """Return the last statement; that of a block in the last place, since ``({ … });`` was read as a block."""
    match block.items:
        case (*_, s.Block() as last):
            return last_of(last)
        case (*_, last):
            return last
    return None


def with_value_last(block: s.Block) -> s.Block:
    """Return a block whose last statement has its value: a block there is an expression of its own."""
    match block.items:
        case (*items, s.Block(span=span) as last):
            said = ("({ … }), which is GNU C,", "its statements and an expression")
            value = s.StatementExpression(*said, (), with_value_last(last), span=span)
            return s.Block((*items, s.Evaluate(value, span=span)), span=block.span)
    return block
