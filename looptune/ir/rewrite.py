"""The one way to change a tree: a rule, applied bottom up, that returns None to keep a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache, reduce
from operator import attrgetter
from typing import Any, TypeVar

from looptune.ir.nodes import (
    ASIDE,
    Assign,
    Binary,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Loop,
    Node,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.simplify import fold

Rule = Callable[[Node], "Node | tuple[Node, ...] | None"]
N = TypeVar("N", bound=Node)
Tree = TypeVar("Tree", Loop, Expr, Stmt, Codelet, tuple[Expr, ...], tuple[Stmt, ...])
"""What has the same kind when its parts are rewritten, or a tuple of that."""

LEAVES = frozenset({Var, Const})
"""The nodes without children, which are most of a tree."""


@cache
def _children(cls: Any) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a node class that can hold nodes, and whether each is a tuple.

    Spans, directives and derivations are kept.
    """
    plain = ("str", "int", "bool", "Mode", "Literal", "tuple[int", "tuple[str", "Annotations", "Derivation")
    held = (f for f in fields(cls) if f.name not in ("span", "directives") and not str(f.type).startswith(plain))
    return tuple((f.name, str(f.type).startswith("tuple")) for f in held)


def map_children(rule: Callable[[Node], Any], node: N) -> N:
    """Apply ``rule`` to each child of ``node``; returns the same object if nothing changed.

    If a child is in a tuple, ``rule`` may return a tuple, which is spliced in.
    """
    changed: dict[str, Any] = {}
    kind: Any = type(node)
    for name, many in _children(kind):
        old = getattr(node, name)
        new: Any = _mapped(rule, old) if many else old if old is None else rule(old)
        if new is not old:
            changed[name] = new
    return replace(node, **changed) if changed else node


def _mapped(rule: Callable[[Any], Any], old: tuple[Any, ...]) -> tuple[Any, ...]:
    """``rule`` applied to each node of a tuple; the same object when nothing changed."""
    out: list[Any] = []
    same = True
    for child in old:
        new = child if child is None else rule(child)
        same = same and new is child
        if isinstance(new, tuple):
            out.extend(new)
        else:
            out.append(new)
    return old if same else tuple(out)


def map_blocks(rule: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]], stmt: Stmt) -> Stmt:
    """Return the statement with ``rule`` applied to each block it holds, in textual order.

    The same where nothing changed.
    """
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


def rewrite(rule: Rule, node: Tree) -> Tree:
    """Apply ``rule`` once to every node, children first. ``node`` may be a tuple of nodes.

    The rule returns None (keep), a node (replace) or a tuple (splice); untouched subtrees stay the same object.
    """

    def visit(n: Node) -> Any:
        whole = n if type(n) in LEAVES else map_children(visit, n)
        new = rule(whole)
        return whole if new is None else new

    return _visited(visit, node)


def _visited(visit: Callable[[Any], Any], node: Tree) -> Tree:
    made: Tree = _mapped(visit, node) if isinstance(node, tuple) else visit(node)
    return made


def rewrite_stmts(rule: Callable[[Stmt], Stmt | tuple[Stmt, ...] | None], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Rewrite statements as ``rewrite`` does, without visiting expressions, which are most of a tree."""

    def visit(stmt: Stmt) -> Any:
        whole = map_blocks(lambda block: _mapped(visit, block), stmt)
        new = rule(whole)
        return whole if new is None else new

    return _mapped(visit, body)


def conjuncts(cond: Expr) -> tuple[Expr, ...]:
    """Return the conditions whose conjunction is ``cond``, in the order in which C evaluates them."""
    match cond:
        case Binary("&&", lhs, rhs):
            return (*conjuncts(lhs), *conjuncts(rhs))
    return (cond,)


def conjunction(conditions: Iterable[Expr]) -> Expr:
    """Return the condition that all of these hold, of which there is at least one."""
    return reduce(lambda a, b: Binary("&&", a, b), conditions)


def disjunction(conditions: Iterable[Expr]) -> Expr:
    """Return the condition that one of these holds, of which there is at least one."""
    return reduce(lambda a, b: Binary("||", a, b), conditions)


def renaming(names: Mapping[str, str]) -> Callable[[Node], Node | None]:
    """Return a rule for ``rewrite`` that renames variables, arrays and loops.

    >>> rewrite(renaming({"i": "j"}), Binary("+", Var("i"), Const(1)))
    Binary(op='+', lhs=Var(name='j', dtype='int32'), rhs=Const(value=1, dtype='int32'))
    """

    def rule(n: Node) -> Node | None:
        match n:
            case Var(name) if name in names:
                return replace(n, name=names[name])
            case Load(array) if array in names:
                return replace(n, array=names[array])
            case Loop(var, private_arrays=own) if var in names or not names.keys().isdisjoint(own):
                return replace(n, var=names.get(var, var), private_arrays=tuple(names.get(a, a) for a in own))
        return None

    return rule


def substitute(node: Tree, env: Mapping[str, Expr]) -> Tree:
    """Replace each ``Var`` named in ``env``, folding the constants this makes.

    >>> substitute(Binary("+", Var("i"), Const(1)), {"i": Const(2)})
    Const(value=3, dtype='int32')
    """

    def visit(n: Node) -> Any:
        match n:
            case Const():
                return n
            case Var(name):
                return env.get(name, n)
            case Binary(op, lhs, rhs):
                a, b = visit(lhs), visit(rhs)
                return n if a is lhs and b is rhs else fold(Binary(op, a, b, span=n.span))
            case Load(array, index, dtype):
                at = tuple(map(visit, index))
                return n if _same(at, index) else Load(array, at, dtype, span=n.span)
            case Unary() | Cast():
                return fold(map_children(visit, n))
        return map_children(visit, n)

    return _visited(visit, node) if env else node


@cache
def _parts(cls: Any) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return what ``walk`` goes through, the last field first: not what is ``ASIDE``."""
    aside = {f.name for f in fields(cls) if f.metadata == ASIDE}
    found = [name for name, _ in reversed(_children(cls)) if name not in aside]
    if len(found) == 1:
        only = attrgetter(*found)
        return lambda node: (only(node),)
    return attrgetter(*found) if found else None


def walk(node: Any) -> Iterator[Node]:
    """Yield every node of a tree (or tuple of trees), parents first, in textual order, without directives."""
    stack = [node]
    while stack:
        here = stack.pop()
        kind: Any = type(here)
        if kind is tuple:
            stack.extend(here[::-1])
        elif here is not None:
            yield here
            if kind is Binary:
                stack += (here.rhs, here.lhs)
            elif kind not in LEAVES and (parts := _parts(kind)) is not None:
                stack.extend(parts(here))


def walk_stmts(body: Stmt | tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield the statements among the nodes that ``walk`` yields, without traversing expressions."""
    stack: list[Stmt | tuple[Stmt, ...]] = [body]
    while stack:
        here = stack.pop()
        if isinstance(here, tuple):
            stack.extend(reversed(here))
            continue
        yield here
        match here:
            case Loop(body=inner) | While(body=inner):
                stack.append(inner)
            case If(_, then, other):
                stack += (other, then)


def has_load(tree: Any) -> bool:
    """Tell whether an element of an array is accessed in the tree."""
    return any(isinstance(n, Load) for n in walk(tree))


def has_loop(body: Stmt | tuple[Stmt, ...]) -> bool:
    """Tell whether there is a loop among the statements and in them."""
    return any(isinstance(n, Loop | While) for n in walk_stmts(body))


def walk_outside_loops(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield the statements that are not in an inner loop."""
    for stmt in body:
        yield stmt
        match stmt:
            case If(_, then, other):
                yield from walk_outside_loops((*then, *other))
