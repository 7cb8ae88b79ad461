"""The end of a scop that is the one statement of an ``if`` or a loop, without braces.

    if (k)                                        if (k) {
    #pragma scop                                  #pragma scop
      for (i = 0; i < n; i++) …           ==>       for (i = 0; i < n; i++) …
    #pragma endscop                               #pragma endscop
                                                  }

For a C compiler, which ignores both lines, the statement between them is the body, and the second line is after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.core.source import NOWHERE, Span
from looptune.frontend import c_ast

if TYPE_CHECKING:
    from looptune.frontend.pragma import Pragma

SCOPS = ("scop", "endscop")


def with_pragmas(items: list[c_ast.Item], marks: Sequence[Pragma]) -> list[c_ast.Item]:
    """Return the items of a block and the pragmas after them.

    The end of a scop that is the body of the last item, without braces, belongs to that body.
    """
    found = list(items)
    for k, pragma in enumerate(marks):
        end = c_ast.PragmaItem(pragma, span=pragma.span)
        whole = _with_end(found[-1], end) if found and not k and pragma.family == "endscop" else None
        found = [*found, end] if whole is None else [*found[:-1], whole]
    return found


def _with_end(item: c_ast.Item, end: c_ast.PragmaItem) -> c_ast.Item | None:
    """Return a statement whose last body without braces, in which a scop begins, has its end; None for any other."""
    match item:
        case c_ast.If(then=then, other=other):
            last = other if other.items else then
        case c_ast.For(body=body) | c_ast.While(body=body, after=False):
            last = body
        case _:
            return None
    if last.span is not NOWHERE or not last.items:
        return None
    ends = [n.pragma.family for n in last.items if isinstance(n, c_ast.PragmaItem) and n.pragma.family in SCOPS]
    inner = end if ends[-1:] == ["scop"] else _with_end(last.items[-1], end)
    if inner is None:
        return None
    made = c_ast.Block((*last.items, inner) if inner is end else (*last.items[:-1], inner))
    match item:
        case c_ast.If(other=other):
            return replace(item, other=made) if other.items else replace(item, then=made)
        case c_ast.For() | c_ast.While():
            return replace(item, body=made)
    return None


def is_braceless(body: c_ast.Block, place: Span) -> bool:
    """Return whether the pragma at a place stands before the one statement of a body without braces."""
    blocks = (n for n in c_ast.walk(body) if isinstance(n, c_ast.Block) and n.span is NOWHERE)
    return any(isinstance(item, c_ast.PragmaItem) and item.span == place for block in blocks for item in block.items)
