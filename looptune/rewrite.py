"""The one way to change a tree: a rule, applied bottom up, that returns None to keep a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from looptune.ir import Assign, Bin, Cast, Expr, If, Loop, Node, Stmt, Un, Var, While
from looptune.simplify import fold

Rule = Callable[[Node], "Node | tuple[Node, ...] | None"]
N = TypeVar("N", bound=Node)


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.name not in ("span", "directives"))


def map_children(rule: Callable[[Node], Any], node: N) -> N:
    """``node`` with ``rule`` applied to each child; the same object when nothing changed.

    Where a child sits in a tuple, ``rule`` may return a tuple, which is spliced in.
    """
    changed: dict[str, Any] = {}
    kind: Any = type(node)
    for name in _names(kind):
        match getattr(node, name):
            case Node() as old:
                new = rule(old)
                if new is not old:
                    changed[name] = new
            case tuple(old):
                listed = [x for o in old for x in _listed(rule(o) if isinstance(o, Node) else o)]
                if not _same(tuple(listed), old):
                    changed[name] = tuple(listed)
    return replace(node, **changed) if changed else node


def map_blocks(rule: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]], stmt: Stmt) -> Stmt:
    """The statement with ``rule`` applied to each block it holds, in textual order; the same where nothing changed."""
    match stmt:
        case Loop(body=body) | While(body=body):
            new = rule(body)
            return stmt if _same(new, body) else replace(stmt, body=new)
        case If(_, then, other):
            yes, no = rule(then), rule(other)
            return stmt if _same((*yes, *no), (*then, *other)) else replace(stmt, then=yes, other=no)
        case Assign():
            return stmt


def _same(new: tuple[Node, ...], old: tuple[Node, ...]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


def rewrite(rule: Rule, node: Any) -> Any:
    """Apply ``rule`` once to every node, children first. ``node`` may be a tuple of nodes.

    The rule returns None (keep), a node (replace) or a tuple (splice); untouched subtrees stay the same object.
    """
    if isinstance(node, tuple):
        return tuple(x for o in node for x in _listed(rewrite(rule, o)))
    node = map_children(lambda child: rewrite(rule, child), node)
    new = rule(node)
    return node if new is None else new


def substitute(node: Any, env: Mapping[str, Expr]) -> Any:
    """Replace each ``Var`` named in ``env``, folding the constants this makes.

    >>> from looptune.ir import Const
    >>> substitute(Bin("+", Var("i"), Const(1)), {"i": Const(2)})
    Const(value=3, dtype='int32')
    """

    def rule(n: Node) -> Node | None:
        match n:
            case Var(name):
                return env.get(name)
            case Bin() | Un() | Cast():
                folded = fold(n)
                return None if folded is n else folded
            case _:
                return None

    return rewrite(rule, node) if env else node


@cache
def _parts(cls: Any) -> tuple[str, ...]:
    """The fields of a node class that can hold nodes; ``at`` and ``shown`` only name instances to the user."""
    plain = ("str", "int", "Mode", "Literal", "tuple[int", "tuple[str")
    beside = ("span", "directives", "at", "shown")
    return tuple(f.name for f in fields(cls) if f.name not in beside and not str(f.type).startswith(plain))


def walk(node: Any) -> Iterator[Node]:
    """Every node of a tree (or tuple of trees), parents first, in textual order; directives are not part of it."""
    stack = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, tuple):
            stack.extend(reversed(here))
        elif isinstance(here, Node):
            yield here
            kind: Any = type(here)
            stack.extend(getattr(here, name) for name in reversed(_parts(kind)))


def _listed(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)
