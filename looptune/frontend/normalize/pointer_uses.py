"""How the statements of a nest use pointers and arrays, for ``addresses``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.normalize.library_effects import STATES
from looptune.frontend.normalize.struct_layout import constant_value, lvalue_type


def is_array_of_numbers(kind: c_ast.Type) -> bool:
    """Tell whether it is an array of numbers or a pointer to numbers, of any rank."""
    leaf, depth = kind, 0
    while isinstance(leaf, c_ast.Pointer | c_ast.ArrayOf):
        leaf, depth = leaf.to if isinstance(leaf, c_ast.Pointer) else leaf.of, depth + 1
    return depth > 0 and isinstance(leaf, c_ast.Basic) and leaf.dtype != "void"


def root(e: Any) -> str:
    """Return the array of which an expression is an element, "" for other expressions."""
    while isinstance(e, c_ast.Index):
        e = e.base
    return e.name if isinstance(e, c_ast.Name) else ""


def otherwise(node: Any, types: Mapping[str, c_ast.Type]) -> set[str]:
    """Return the names of arrays and pointers that are used otherwise than for one of their numbers."""
    match node:
        case c_ast.Index() | c_ast.Unary("*", c_ast.Name()) if isinstance(lvalue_type(node, types), c_ast.Basic):
            found: set[str] = set()
            e: Any = node
            while isinstance(e, c_ast.Index):
                found |= otherwise(e.index, types)
                e = e.base
            e = e.arg if isinstance(e, c_ast.Unary) and e.op == "*" and e is node else e
            return found if isinstance(e, c_ast.Name) else found | otherwise(e, types)
        case c_ast.Name(name):
            return {name}
        case c_ast.Unary("&", c_ast.Index() as element) if root(element):
            # the element itself is not used
            return {root(element)} | otherwise(element, types)
    return set().union(*(otherwise(child, types) for child in c_ast.children(node)))


def is_returned(e: Any) -> bool:
    """Tell whether an expression may be what a call returns."""
    return any(isinstance(n, c_ast.Name) and n.name in STATES for n in c_ast.walk(e))


def targets(node: Any) -> Iterator[c_ast.Expr]:
    """Yield what an expression sets."""
    match node:
        case c_ast.Assignment(_, target) | c_ast.Unary("++" | "--", target):
            yield target


def elements(kind: c_ast.Type) -> Iterator[tuple[int, ...]]:
    """Yield the indices of the numbers in a field."""
    if not isinstance(kind, c_ast.ArrayOf):
        yield ()
        return
    count = None if kind.extent is None else constant_value(kind.extent)
    assert count is not None, "its elements were counted"
    for k in range(count):
        yield from ((k, *inner) for inner in elements(kind.of))
