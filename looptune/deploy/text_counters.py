"""Statements between loops of the text: their counters in terms of the variables that the text has for them."""

from __future__ import annotations

from looptune.core.source import NOWHERE, Span
from looptune.ir.def_use import names_in, referenced_names
from looptune.ir.nodes import Binary, Cast, Expr, Loop, Stmt, Var
from looptune.ir.rewrite import rewrite, substitute
from looptune.ir.simplify import add, div, fold, is_integer, sub

Around = tuple[Loop, ...]
"""The loops that keep their text, from the outermost in, around statements that do not."""


class NotLocal(Exception):
    """What differs cannot be written in place of these statements alone."""

    def __init__(self, why: str, span: Span = NOWHERE) -> None:
        super().__init__(why)
        self.why = why
        self.span = span


def in_terms_of_the_text(stmts: tuple[Stmt, ...], around: Around) -> tuple[tuple[Stmt, ...], dict[str, Loop]]:
    """Return the statements with the text's variables in place of loop counters.

    Loops are returned by the names that stand for these variables.

    A loop that the text writes ``for (k = n - 1; k >= 0; k--)`` has a counter that goes up: the ``n - 1 - counter`` of
    its statements is ``k`` there, and any other use of the counter is of ``n - 1 - k``.
    """
    counters: dict[str, Loop] = {}
    hiding: set[str] = set()
    for loop in reversed(around):
        name = "" if loop.counter is None else loop.counter.name
        hidden = name in hiding
        hiding.add(name)
        if loop.var not in referenced_names(stmts):
            continue
        if not name:
            raise NotLocal("the loop around these statements counts with a pointer: transform it with them", loop.span)
        if hidden:
            raise NotLocal(f"two variables of the text are called {name}: rename one of them", loop.span)
        value = Var(loop.var, loop.dtype) if loop.source_value is None else loop.source_value
        own = Var(f"{loop.var}@", value.dtype)
        stmts = _put(stmts, value, own)
        counter = _solved(value, loop.var, own)
        if counter is not None:
            stmts = substitute(stmts, {loop.var: counter})
        elif loop.var in referenced_names(stmts):
            raise NotLocal(f"the loop of {name} counts differently from its text", loop.span)
        counters[own.name] = loop
    return stmts, counters


def _put(stmts: tuple[Stmt, ...], value: Expr, name: Var) -> tuple[Stmt, ...]:
    """Return the statements with the name wherever they compute the value."""
    return rewrite(lambda n: name if n == value else None, stmts)


def _solved(value: Expr, var: str, known: Expr) -> Expr | None:
    """Return what ``var`` is where the ``value`` made of it is ``known``, or None where moving terms does not tell."""
    if value.dtype != known.dtype:
        known = fold(Cast(value.dtype, known))
    match value:
        case Var(name) if name == var:
            return known
        case Cast(arg=e) if is_integer(e.dtype):
            return _solved(e, var, known)
        case Binary("+" | "-" | "*" as op, lhs, rhs):
            left, right = var in names_in(lhs), var in names_in(rhs)
            if left == right:
                return None
            inner, other = (lhs, rhs) if left else (rhs, lhs)
            match op:
                case "+":
                    return _solved(inner, var, sub(known, other))
                case "-":
                    return _solved(inner, var, add(known, other) if left else sub(other, known))
                case "*":
                    return _solved(inner, var, div(known, other))
    return None
