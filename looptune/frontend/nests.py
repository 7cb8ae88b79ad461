"""Find the loop nests of a function, each of which can be a codelet: ``FUNCTION:LINE`` addresses one.

int main(void)
{
  for (i = 0; i < n; i++)          main:3
    for (j = 0; j < n; j++) …      main:4
  printf(…);
  while (…) …                      main:6
}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from looptune.frontend import c_ast
from looptune.frontend.pragma import LOOP_FAMILIES

if TYPE_CHECKING:
    from looptune.core.source import Span

SourceLoop = c_ast.For | c_ast.While


def outermost_loops(node: Any) -> Iterator[SourceLoop]:
    """Yield the loops of a statement that are in no other loop of it, in textual order.

    The ``do { } while (0)`` of a macro is no loop.

    >>> from looptune.frontend.c_ast import Block, Name, While
    >>> inner = While(Name("j"), Block(()))
    >>> [n.cond.name for n in outermost_loops(Block((While(Name("i"), Block((inner,))), inner)))]
    ['i', 'j']
    """
    for child in c_ast.children(node):
        if isinstance(child, c_ast.For | c_ast.While) and not _runs_once(child):
            yield child
        else:
            yield from outermost_loops(child)


def _runs_once(loop: SourceLoop) -> bool:
    return isinstance(loop, c_ast.While) and loop.after and loop.cond == c_ast.Number("0")


def all_loops(node: Any) -> Iterator[SourceLoop]:
    """Yield every loop of a statement, those around others first."""
    return (n for n in c_ast.walk(node) if isinstance(n, c_ast.For | c_ast.While))


def is_in_loop(body: c_ast.Block, span: Span) -> bool:
    """Tell whether a place is in a loop of the body: in one of its statements or in its header."""
    return any(n.span == span for loop in outermost_loops(body) for n in c_ast.walk(loop) if hasattr(n, "span"))


def marked_loops(body: c_ast.Block) -> frozenset[Span]:
    """Return the loops that a directive of looptune or HMPP stands before, by their places."""
    found: set[Span] = set()
    for block in (n for n in c_ast.walk(body) if isinstance(n, c_ast.Block)):
        for k in range(len(block.items)):
            end = nest_end(block.items, k)
            if end is not None and end > k:
                found.add(block.items[end].span)
    return frozenset(found)


def nest_end(items: tuple[c_ast.Item, ...], k: int) -> int | None:
    """Return the index of the loop that begins at an item, its directives included, or None if none does."""
    while k < len(items):
        match items[k]:
            case c_ast.PragmaItem(pragma) if pragma.family in LOOP_FAMILIES:
                k += 1
            case c_ast.For() | c_ast.While():
                return k
            case _:
                return None
    return None
