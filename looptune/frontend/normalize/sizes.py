"""Replace ``sizeof`` by the number of bytes, where that is a constant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from looptune.frontend import c_ast
from looptune.frontend.normalize.struct_layout import size_of

_POINTER = 8


def replace_sizeof(
    items: tuple[c_ast.Item, ...], types: Mapping[str, c_ast.Type], parameters: Collection[str]
) -> tuple[c_ast.Item, ...]:
    """Return the statements with each ``sizeof`` of known size as a constant of type ``size_t``.

    ``types`` are those of the variables; a parameter that is declared as an array is a pointer, as in C.
    """
    known = {name: _as_parameter(kind) if name in parameters else kind for name, kind in types.items()}

    def rule(node: Any) -> Any:
        if isinstance(node, c_ast.SizeOf) and node.of is not None:
            count = _bytes(node.of if not isinstance(node.of, c_ast.Syntax) else _type_of(node.of, known))
            return node if count is None else c_ast.Number(f"{count}UL", span=node.span)
        return c_ast.map_children(rule, node)

    return tuple(rule(item) for item in items)


def _bytes(kind: c_ast.Type | None) -> int | None:
    match kind:
        case c_ast.Basic(dtype) if dtype != "void":
            return np.dtype(dtype).itemsize
        case c_ast.Pointer():
            return _POINTER
        case c_ast.ArrayOf(of, extent) if extent is not None:
            count, element = _constant(extent), _bytes(of)
            return None if count is None or element is None else count * element
        case c_ast.Struct():
            return size_of(kind)
    return None


def _as_parameter(kind: c_ast.Type) -> c_ast.Type:
    return c_ast.Pointer(kind.of) if isinstance(kind, c_ast.ArrayOf) else kind


def _constant(e: c_ast.Expr) -> int | None:
    """Return the value of an extent that is written with numbers."""
    match e:
        case c_ast.Number(text) if text.isdecimal():
            return int(text)
        case c_ast.Binary("+" | "-" | "*" as op, lhs, rhs):
            a, b = _constant(lhs), _constant(rhs)
            return None if a is None or b is None else a + b if op == "+" else a - b if op == "-" else a * b
    return None


def _type_of(e: c_ast.Expr, types: Mapping[str, c_ast.Type]) -> c_ast.Type | None:
    """Return the type of an lvalue or a cast, or None if it is not known here."""
    match e:
        case c_ast.Name(name):
            # NAME#0 is the copy of a parameter
            return types.get(name.removesuffix("#0"))
        case c_ast.Index(inner) | c_ast.Unary("*", inner):
            match _type_of(inner, types):
                case c_ast.ArrayOf(element, _) | c_ast.Pointer(element):
                    return element
        case c_ast.Cast(kind):
            return kind
    return None
