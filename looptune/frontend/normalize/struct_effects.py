"""What calls of other functions may do to structs, as far as it matters: for analysis only.

    ld[other_functions[0]].left = ...       the call f(ld, x) may change each field of the structs that ld leads to

``library_effects`` writes such a statement for each field of a struct that a function is given. Those that the other
statements do not use are left out here. Where these only use the fields of one struct, it is that one that the function
is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import base
from looptune.frontend.normalize.library_effects import STATES
from looptune.frontend.normalize.struct_layout import lvalue_type

Items = tuple[c_ast.Item, ...]


def is_somewhere(index: c_ast.Expr) -> bool:
    """Tell whether it is the index of which nothing is known that ``library_effects`` writes."""
    match index:
        case c_ast.Index(c_ast.Name(name), c_ast.Number("0")):
            return base(name) in STATES
    return False


def without_unused_fields(items: Items, types: Mapping[str, c_ast.Type]) -> Items:
    """Return the statements without the effects of calls on fields that no other statement uses."""
    if any(_copies_struct(n, types) for item in items for n in c_ast.walk(item)):
        return items
    used = {name for item in items for name in _used(item)}

    def is_unused(e: Any) -> bool:
        return _is_effect(e) and not used.issuperset(_fields(e))

    def rewrite(node: Any) -> Any:
        match node:
            case c_ast.Block(inner):
                kept = (i for i in inner if not (isinstance(i, c_ast.Evaluate) and _sets(i.expr, is_unused)))
                return replace(node, items=tuple(rewrite(i) for i in kept))
            case c_ast.Binary("+", lhs, rhs) if is_unused(rhs):
                return rewrite(lhs)
        return c_ast.map_children(rewrite, node)

    found: Items = rewrite(c_ast.Block(items)).items
    return found


def _sets(e: c_ast.Expr, is_unused: Any) -> bool:
    return isinstance(e, c_ast.Assignment) and is_unused(e.target)


def _copies_struct(node: Any, types: Mapping[str, c_ast.Type]) -> bool:
    """Tell whether all fields of a struct are used at once."""
    match node:
        case c_ast.Assignment(_, target):
            return isinstance(lvalue_type(target, types), c_ast.Struct)
        case c_ast.Declare(_, c_ast.Struct(), init):
            return isinstance(init, c_ast.Expr)
    return False


def _used(node: Any) -> Iterator[str]:
    """Yield the names of the fields that are used otherwise than in the effect of a call."""
    if _is_effect(node):
        return
    if isinstance(node, c_ast.Field):
        yield node.name
    for child in c_ast.children(node):
        yield from _used(child)


def _is_effect(e: Any) -> bool:
    """Tell whether it is a field of a struct that nothing is known of but that a call was given it."""
    has_field = is_anywhere = False
    while isinstance(e, c_ast.Index | c_ast.Field):
        has_field = has_field or isinstance(e, c_ast.Field)
        is_anywhere = is_anywhere or (isinstance(e, c_ast.Index) and is_somewhere(e.index))
        e = e.base
    return has_field and is_anywhere


def _fields(e: Any) -> Iterator[str]:
    while isinstance(e, c_ast.Index | c_ast.Field):
        if isinstance(e, c_ast.Field):
            yield e.name
        e = e.base
