"""Tests of pointers for being null, which the codelet assumes that they are not.

    if (bias != NULL) y[i] += bias[i];       ==>     y[i] += bias[i];
    y[i] += bias ? bias[i] : 0;              ==>     y[i] += bias[i];

A pointer from outside that the statements do not set is the same in all of them. What calls the codelet with a null
pointer has to run the loops of the text instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.normalize.pointer_tests import is_null

Items = tuple[c_ast.Item, ...]


def assume_nonnull(
    items: Items, outside: Mapping[str, c_ast.Type], parameters: Collection[str]
) -> tuple[Items, frozenset[str]]:
    """Return the statements without tests of pointers from ``outside`` for being null, and the names of these pointers.

    The same where there is no such test. An array among the ``parameters`` is a pointer.
    """
    nodes = [n for item in items for n in c_ast.walk(item)]
    moved = {n.target.name for n in nodes if isinstance(n, c_ast.Assignment) and isinstance(n.target, c_ast.Name)}
    moved |= {n.name for n in nodes if isinstance(n, c_ast.Declare)}
    changed = (n.arg for n in nodes if isinstance(n, c_ast.Unary) and n.op in ("++", "--", "&"))
    moved |= {arg.name for arg in changed if isinstance(arg, c_ast.Name)}
    arrays = {name for name in parameters if isinstance(outside.get(name), c_ast.ArrayOf)}
    pointers = arrays | {name for name, kind in outside.items() if isinstance(kind, c_ast.Pointer)}
    tests = _Tests(pointers - moved)
    made = tests.block(items)
    return (made, frozenset(tests.found)) if tests.found else (items, frozenset())


class _Tests:
    """``pointers`` are those that are not null; ``found`` those of them that are tested."""

    def __init__(self, pointers: Collection[str]) -> None:
        self.pointers = pointers
        self.found: set[str] = set()

    def block(self, items: Items) -> Items:
        return tuple(made for item in items for made in self.item(item))

    def item(self, item: Any) -> Items:
        match item:
            case c_ast.If(cond, then, other):
                known = self.truth(cond)
                if known is not None:
                    chosen = then if known else other
                    return (replace(chosen, items=self.block(chosen.items)),) if chosen.items else ()
        return (self.node(item),)

    def node(self, node: Any) -> Any:
        match node:
            case c_ast.Block(items):
                return replace(node, items=self.block(items))
            case c_ast.Ternary(cond, then, other):
                known = self.truth(cond)
                if known is not None:
                    return self.node(then if known else other)
            case c_ast.Binary("&&" | "||", lhs, rhs) if self.truth(node) is None:
                return self.joined(replace(node, lhs=self.condition(lhs), rhs=self.condition(rhs)), lhs, rhs)
            case c_ast.Binary("&&" | "||" | "==" | "!=") | c_ast.Unary("!"):
                return self.condition(node)
        return c_ast.map_children(self.node, node)

    def joined(self, made: c_ast.Binary, lhs: Any, rhs: Any) -> c_ast.Expr:
        """Return ``a && b`` without an operand that is known to hold, or ``a || b`` without one that does not."""
        neutral = made.op == "&&"
        rest = [e for e, of in ((made.lhs, lhs), (made.rhs, rhs)) if self.truth(of) is not neutral]
        return rest[0] if len(rest) == 1 and _is_truth(rest[0]) else made

    def condition(self, e: Any) -> Any:
        """Return a condition, a number where it is known."""
        match self.truth(e):
            case None:
                return c_ast.map_children(self.node, e) if not _joins(e) else self.node(e)
            case known:
                return c_ast.Number(str(int(known)), span=e.span)

    def truth(self, e: Any) -> bool | None:
        """Return whether a condition holds, as far as the pointers decide it."""
        match e:
            case c_ast.Name(name) if name in self.pointers:
                self.found.add(name)
                return True
            case c_ast.Unary("!", arg):
                known = self.truth(arg)
                return None if known is None else not known
            case c_ast.Binary("==" | "!=" as op, lhs, rhs) if is_null(rhs) or is_null(lhs):
                tested = lhs if is_null(rhs) else rhs
                known = self.truth(tested) if isinstance(tested, c_ast.Name) else None
                return None if known is None else known == (op == "!=")
            case c_ast.Binary("&&" | "||" as op, lhs, rhs):
                return self.of_both(op == "&&", lhs, rhs)
        return None

    def of_both(self, both: bool, lhs: Any, rhs: Any) -> bool | None:
        """Return what ``lhs && rhs`` is, or ``lhs || rhs``; None also where the rest of it has to be evaluated."""
        first = self.truth(lhs)
        if first is not None:
            return self.truth(rhs) if first == both else first
        return None


def _is_truth(e: c_ast.Expr) -> bool:
    match e:
        case c_ast.Binary("<" | "<=" | ">" | ">=" | "==" | "!=" | "&&" | "||") | c_ast.Unary("!"):
            return True
    return False


def _joins(e: Any) -> bool:
    return isinstance(e, c_ast.Binary) and e.op in ("&&", "||")
