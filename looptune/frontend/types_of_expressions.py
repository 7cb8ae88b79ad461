"""Replace ``typeof(x)`` by the type of x.

    typeof(a[0]) *p = a;                   double *p = a;
    typeof(({ int t = n; t; })) m = 0;     int m = 0;

Of an expression whose type is not found here, ``typeof`` stays: it is that of its value, which is a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.c_constants import number
from looptune.frontend.normalize.struct_layout import lvalue_type
from looptune.ir.c_printer import arithmetic_type

_TRUTHS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||")


def with_known_types(function: c_ast.Function, at_file: Iterable[c_ast.Declare]) -> c_ast.Function:
    """Return the function with types in place of ``typeof``; ``at_file`` are the variables of the file."""
    if not any(isinstance(n, c_ast.TypeOf) for n in c_ast.walk(function.body)):
        return function
    declared = [*at_file, *function.params, *(n for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare))]
    types = {d.name: d.type for d in declared}

    def rule(node: Any) -> Any:
        match node:
            case c_ast.Declare(name, kind):
                types[name] = _known(kind, types)
                node = replace(node, type=types[name])
            case c_ast.Cast(kind):
                node = replace(node, type=_known(kind, types))
        return c_ast.map_children(rule, node)

    return replace(function, body=rule(function.body))


def _known(kind: c_ast.Type, types: Mapping[str, c_ast.Type]) -> c_ast.Type:
    match kind:
        case c_ast.TypeOf(e):
            found = _type(e, types)
            return kind if found is None or isinstance(found, c_ast.TypeOf) else found
        case c_ast.Pointer(to):
            return c_ast.Pointer(_in_type(to, types))
        case c_ast.ArrayOf(of, extent):
            return c_ast.ArrayOf(_in_type(of, types), extent)
    return kind


def _in_type(kind: c_ast.Type, types: Mapping[str, c_ast.Type]) -> c_ast.Type:
    """Return a type to which a pointer leads, or that of an array's elements."""
    found = _known(kind, types)
    return c_ast.UnsupportedType("typeof of this expression") if isinstance(found, c_ast.TypeOf) else found


def _type(e: Any, types: Mapping[str, c_ast.Type]) -> c_ast.Type | None:
    """Return the type of an expression, None where it is not known."""
    found = lvalue_type(e, types)
    if found is not None:
        return _known(found, types)
    match e:
        case c_ast.Number(text):
            return c_ast.Basic(number(text, e.span).dtype)
        case c_ast.StatementExpression(body=c_ast.Block((*items, c_ast.Evaluate(last)))):
            own = dict(types)
            for d in (n for item in items for n in c_ast.walk(item) if isinstance(n, c_ast.Declare)):
                own[d.name] = _known(d.type, own)
            return _type(last, own)
        case c_ast.Binary(op) if op in _TRUTHS:
            return c_ast.Basic("int32")
        case c_ast.Unary("!"):
            return c_ast.Basic("int32")
        case c_ast.Binary("<<" | ">>", lhs):
            return _arithmetic(lhs, lhs, types)
        case c_ast.Binary(_, lhs, rhs) | c_ast.Ternary(_, lhs, rhs):
            return _arithmetic(lhs, rhs, types)
        case c_ast.Unary("+" | "-" | "~", arg):
            return _arithmetic(arg, arg, types)
        case c_ast.Assignment(_, target) | c_ast.Unary("++" | "--", target):
            return _type(target, types)
    return None


def _arithmetic(lhs: Any, rhs: Any, types: Mapping[str, c_ast.Type]) -> c_ast.Type | None:
    match _type(lhs, types), _type(rhs, types):
        case c_ast.Basic(a), c_ast.Basic(b) if "void" not in (a, b):
            return c_ast.Basic(arithmetic_type(a, b))
    return None
