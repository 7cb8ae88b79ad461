"""Conditions that are not affine: they depend on data, and on when the data are read.

    for i:                               S0 and S1 run where A[i] > 0 held
      if (i < n && A[i] > 0)             before either of them did
        S0: A[i] = 0                     (i < n is part of their domains)
        S1: B[i] = 1

An ``if`` is split into what must be true and what must be false for a branch to be taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from looptune.ir.nodes import Binary, Expr, Load, Node, Unary, Var
from looptune.ir.rewrite import rewrite
from looptune.poly.affine import NOTHING, Least, condition_to_isl, name


@dataclass(frozen=True, slots=True)
class DataCondition:
    """One part of an ``if`` around a statement, which runs only where ``cond`` has the value ``value``.

    It is evaluated in the ``loops`` outermost of the statement's loops, before what stands at ``place`` in their text,
    where ``domain`` holds. ``ifs`` are the conditions around that ``if``; ``full_condition`` is the whole condition.
    """

    cond: Expr
    value: bool
    loops: int
    place: int
    domain: str
    ifs: int
    full_condition: Expr


def conjuncts(cond: Expr, wanted: bool) -> Iterator[tuple[Expr, bool]]:
    """Yield what must be true, or false, for ``cond`` to be ``wanted``, in the order in which C evaluates it.

    >>> i, p, q = Var("i"), Var("p"), Var("q")
    >>> [(e.name, wanted) for e, wanted in conjuncts(Unary("!", Binary("||", i, Unary("!", Binary("&&", p, q)))), True)]
    [('i', False), ('p', True), ('q', True)]
    """
    match cond:
        case Unary("!", arg):
            yield from conjuncts(arg, not wanted)
        case Binary("&&" | "||" as op, lhs, rhs) if (op == "&&") == wanted:
            yield from conjuncts(lhs, wanted)
            yield from conjuncts(rhs, wanted)
        case _:
            yield cond, wanted


def affine_part(cond: Expr, wanted: bool, scope: Collection[str], least: Least = NOTHING) -> tuple[str, bool]:
    """Return the affine part of a condition as isl text, and whether that is the whole condition.

    ``wanted`` is the value that it shall have; ``scope`` has the isl names that the text may use. See
    ``condition_to_isl``.
    """

    def hide(n: Node) -> Node | None:
        match n:
            case Var(var, dtype) if name(var) not in scope:
                return Load(var, (), dtype)
        return None

    return condition_to_isl(rewrite(hide, cond), wanted, least)
