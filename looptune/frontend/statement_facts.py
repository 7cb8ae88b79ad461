"""What the statements of a function, or those around a codelet, declare, set and may change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.math_functions import is_pure


def spliced(tree: Any, old: tuple[c_ast.Item, ...], new: tuple[c_ast.Item, ...]) -> Any:
    """Return the tree with ``new`` where ``old``, successive statements of one block, stand."""
    if isinstance(tree, c_ast.Block) and old:
        for k, item in enumerate(tree.items):
            if item is old[0]:
                return replace(tree, items=(*tree.items[:k], *new, *tree.items[k + len(old) :]))
    return c_ast.map_children(lambda part: spliced(part, old, new), tree)


def declarations_in(body: c_ast.Block) -> tuple[c_ast.Declare, ...]:
    """Return all declarations."""
    return tuple(n for n in c_ast.walk(body) if isinstance(n, c_ast.Declare))


def without_headers(items: Iterable[c_ast.Item]) -> tuple[Any, ...]:
    """Return the statements with every ``for`` reduced to its body."""
    found: list[Any] = []
    for item in items:
        match item:
            case c_ast.Block(items_of):
                found += without_headers(items_of)
            case c_ast.For(_, _, _, body) | c_ast.While(_, body):
                found += without_headers(body.items)
            case c_ast.If(_, then, other):
                found += without_headers((*then.items, *other.items))
            case _:
                found.append(item)
    return tuple(found)


def without_declarations(items: Iterable[c_ast.Item]) -> tuple[Any, ...]:
    """Return what the statements do, declarations apart, ``for`` headers included."""
    return tuple(n for item in items for n in c_ast.walk(item) if isinstance(n, c_ast.Assignment | c_ast.Unary))


def variable_assignment(item: c_ast.Item) -> Any:
    """Return the assignment to a variable that a statement is, or None."""
    match item:
        case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name()) as found):
            return found
    return None


def set_names(node: c_ast.Block) -> Iterator[str]:
    """Yield the variables that are assigned outside of declarations."""
    for n in c_ast.walk(node):
        match n:
            case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--", c_ast.Name(name)):
                yield name


def is_opaque(init: c_ast.Expr | c_ast.InitializerList) -> bool:
    """Tell whether a value is computed by something that no codelet contains."""
    return any(
        isinstance(n, c_ast.Unsupported | c_ast.Field) or (isinstance(n, c_ast.Call) and not is_pure(n.name))
        for n in c_ast.walk(init)
    )  # fmt: skip


def reads_memory(init: c_ast.Expr | c_ast.InitializerList) -> bool:
    """Tell whether an initial value depends on an element of an array."""
    return any(isinstance(n, c_ast.Index) or (isinstance(n, c_ast.Unary) and n.op == "*") for n in c_ast.walk(init))


def writes_memory(node: Any) -> bool:
    """Tell whether something else than a variable may change.

    That is an array's element, or whatever a function that is called reaches.
    """
    match node:
        case c_ast.Assignment(_, c_ast.Name()):
            return False
        case c_ast.Assignment() | c_ast.Unary("++" | "--", c_ast.Index() | c_ast.Unary("*")):
            return True
        case c_ast.Call(name):
            return not is_pure(name)
        case c_ast.PointerCall():
            return True
        case _:
            return False
