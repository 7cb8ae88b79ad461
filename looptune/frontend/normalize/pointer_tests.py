"""Tests of pointers for being null, as conditions of which nothing is known: for analysis only.

if (aux != NULL) aux[i] = x[i];     ==>     if (tested_pointers[0]) aux[i] = x[i];
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.normalize.library_effects import POINTERS

Items = tuple[c_ast.Item, ...]
Kinds = Callable[[c_ast.Expr], "c_ast.Type | None"]


def replace_pointer_tests(items: Items, kind_of: Kinds) -> Items:
    """Return the statements with an unknown number for each pointer that is tested; ``kind_of`` gives types.

    Two tests are two numbers: that one pointer is null says nothing about another one.
    """
    places = count()

    def unknown(e: c_ast.Expr) -> c_ast.Expr:
        place = c_ast.Number(str(next(places)), span=e.span)
        return c_ast.Index(c_ast.Name(POINTERS, span=e.span), place, span=e.span)

    def truth(e: Any) -> Any:
        match e:
            case c_ast.Binary("&&" | "||"):
                return c_ast.map_children(truth, e)
            case c_ast.Unary("!", arg) if is_pointer(arg):
                return c_ast.Unary("!", truth(arg), span=e.span)
        return unknown(e) if is_pointer(e) else rule(e)

    def rule(node: Any) -> Any:
        match node:
            case c_ast.If(cond) | c_ast.While(cond) | c_ast.Ternary(cond):
                return c_ast.map_children(lambda part: truth(part) if part is cond else rule(part), node)
            case c_ast.Binary("&&" | "||") | c_ast.Unary("!"):
                return truth(node) if not isinstance(node, c_ast.Unary) or is_pointer(node.arg) else inner(node)
            case c_ast.Binary("==" | "!=" as op, lhs, rhs) if is_null(rhs) and is_pointer(lhs):
                return unknown(node) if op == "!=" else c_ast.Unary("!", unknown(node), span=node.span)
            case c_ast.Binary("==" | "!=" as op, lhs, rhs) if is_null(lhs) and is_pointer(rhs):
                return unknown(node) if op == "!=" else c_ast.Unary("!", unknown(node), span=node.span)
        return inner(node)

    def inner(node: Any) -> Any:
        return c_ast.map_children(rule, node)

    def is_pointer(e: Any) -> bool:
        named = isinstance(e, c_ast.Name | c_ast.Index | c_ast.Field)
        return named and isinstance(kind_of(e), c_ast.Pointer | c_ast.ArrayOf)

    return tuple(rule(item) for item in items)


def is_null(e: c_ast.Expr) -> bool:
    """Tell whether an expression is the null pointer."""
    match e:
        case c_ast.Number("0") | c_ast.Name("NULL"):
            return True
        case c_ast.Cast(c_ast.Pointer(), inner):
            return is_null(inner)
    return False
