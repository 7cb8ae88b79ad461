"""Pointers that are set in a nest and read after it: for analysis only, since a codelet cannot return a pointer.

    for (i = 0; i < n; i++) if (x[i] > 0) f = &x[i];     ==>     ... tested_pointers[0] = the offset of f;

If a condition decides whether the pointer is set, the last iteration that sets it decides where it points: the statement
that is added uses it, so that the loop is not found to be parallel. Otherwise its last value is that of the last
iteration, as of a counter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.normalize.library_effects import POINTERS
from looptune.frontend.normalize.pointer_offsets import LAST_OFFSET, moving_pointers

Items = tuple[c_ast.Item, ...]


def last_offsets(
    items: Items, types: Mapping[str, c_ast.Type], read_after: frozenset[str]
) -> tuple[Items, frozenset[str]]:
    """Return statements that use the last values of the pointers that need it, and the pointers whose last value counts.

    These are the pointers to numbers that the statements set and that are read after them.
    """
    found = frozenset(name for name in moving_pointers(items, types) & read_after if _leads_to_numbers(types.get(name)))
    jumps = any(isinstance(n, c_ast.Jump | c_ast.Return) for item in items for n in c_ast.walk(item))
    conditional = found if jumps else found & {name for item in items for name in _set_under_condition(item, False)}
    return tuple(_use(name, items[-1]) for name in sorted(conditional)), found


def _leads_to_numbers(kind: c_ast.Type | None) -> bool:
    return isinstance(kind, c_ast.Pointer) and isinstance(kind.to, c_ast.Basic) and kind.to.dtype != "void"


def _set_under_condition(node: Any, under: bool) -> Iterator[str]:
    """Yield the variables that are set where a condition, or the length of a loop that is not counted, decides."""
    match node:
        case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--", c_ast.Name(name)) if under:
            yield name
        case c_ast.If() | c_ast.While() | c_ast.Switch() | c_ast.Ternary() | c_ast.Binary("&&" | "||"):
            under = True
    for child in c_ast.children(node):
        yield from _set_under_condition(child, under)


def _use(name: str, last: c_ast.Item) -> c_ast.Evaluate:
    target = c_ast.Index(c_ast.Name(POINTERS, span=last.span), c_ast.Number("0", span=last.span), span=last.span)
    value = c_ast.Call(LAST_OFFSET, (c_ast.Name(name, span=last.span),), span=last.span)
    return c_ast.Evaluate(c_ast.Assignment("", target, value, span=last.span), span=last.span)
