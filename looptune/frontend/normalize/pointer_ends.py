"""Pointers that are set in a nest and read after it: for analysis only, since a codelet cannot return a pointer.

    for (i = 0; i < n; i++) if (x[i] > 0) f = &x[i];     ==>     ... tested_pointers[0] = the offset of f;

If a condition decides whether the pointer is set, the last iteration that sets it decides where it points: the
statement that is added uses it, so that the loop is not found to be parallel. (If the pointer led into another array
before, a statement beside each setting carries a dependence instead.) Otherwise its last value is that of the last
iteration, as of a counter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.normalize.library_effects import POINTERS
from looptune.frontend.normalize.pointer_offsets import LAST_OFFSET, moving_pointers, replace_pointers

if TYPE_CHECKING:
    from looptune.core.source import Span

Items = tuple[c_ast.Item, ...]


def replace_ended_pointers(items: Items, types: Mapping[str, c_ast.Type], read_after: frozenset[str]) -> Items:
    """Return the statements without pointers, as ``replace_pointers`` does, but also those that are read after them."""
    found = frozenset(name for name in moving_pointers(items, types) & read_after if _leads_to_numbers(types.get(name)))
    jumps = any(isinstance(n, c_ast.Jump | c_ast.Return) for item in items for n in c_ast.walk(item))
    decided = found if jumps else found & {name for item in items for name in _set_under_condition(item, False)}
    used = tuple(_use(name, items[-1]) for name in sorted(decided))
    try:
        return replace_pointers((*items, *used), types, read_after - found)
    except UnsupportedError:
        # before the nest, the pointer may lead into another array
        marked = _marked(c_ast.Block(items), decided)
        if not used or marked is None:
            raise
        return replace_pointers(marked.items, types, read_after - found)


def _leads_to_numbers(kind: c_ast.Type | None) -> bool:
    return isinstance(kind, c_ast.Pointer) and isinstance(kind.to, c_ast.Basic) and kind.to.dtype != "void"


def _set_under_condition(node: Any, under: bool) -> Iterator[str]:
    """Yield the variables that are set where a condition, or the length of a loop that is not counted, decides."""
    if under and (name := _set_here(node)):
        yield name
    match node:
        case c_ast.If() | c_ast.While() | c_ast.Switch() | c_ast.Ternary() | c_ast.Binary("&&" | "||"):
            under = True
    for child in c_ast.children(node):
        yield from _set_under_condition(child, under)


def _set_here(node: Any) -> str:
    match node:
        case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--", c_ast.Name(name)):
            return name
    return ""


def _use(name: str, last: c_ast.Item) -> c_ast.Evaluate:
    """Return a statement that reads where a pointer leads."""
    value = c_ast.Call(LAST_OFFSET, (c_ast.Name(name, span=last.span),), span=last.span)
    return c_ast.Evaluate(c_ast.Assignment("", _state(last.span), value, span=last.span), span=last.span)


def _state(span: Span) -> c_ast.Index:
    return c_ast.Index(c_ast.Name(POINTERS, span=span), c_ast.Number("0", span=span), span=span)


def _marked(block: c_ast.Block, names: frozenset[str]) -> c_ast.Block | None:
    """Return the statements with one after each that sets a pointer, which gives these an order.

    None where an expression in a statement sets one.
    """
    marks = 0

    def rewrite(node: Any) -> Any:
        nonlocal marks
        node = c_ast.map_children(rewrite, node)
        if not isinstance(node, c_ast.Block):
            return node
        made: list[c_ast.Item] = []
        for item in node.items:
            made.append(item)
            if isinstance(item, c_ast.Evaluate) and _set_here(item.expr) in names:
                marks += 1
                made.append(_mark(item.span))
        return replace(node, items=tuple(made))

    found = rewrite(block)
    return found if marks == sum(_set_here(n) in names for n in c_ast.walk(block)) else None


def _mark(span: Span) -> c_ast.Evaluate:
    # No reduction is of this form.
    total = c_ast.Binary("*", _state(span), c_ast.Number("3", span=span), span=span)
    total = c_ast.Binary("+", total, c_ast.Number("1", span=span), span=span)
    return c_ast.Evaluate(c_ast.Assignment("", _state(span), total, span=span), span=span)
