"""The address of an element in an array in global memory, as a sum in 64 bits of parts that fit 32 bits.

    uint64(m * i + j) + uint64(k) * 4 + 1         Call(ADDRESS, (m * i + j, k * 4, 1))

It is the subscript of a ``Load``, made by ``passes.address_split``: the base, the counters of loops in the thread, and
a constant, which alone may be negative.
"""

from __future__ import annotations

from looptune.ir.nodes import Binary, Call, Cast, Const, Expr, Node, Stmt
from looptune.ir.rewrite import rewrite
from looptune.ir.simplify import add

MOST_ELEMENTS = 2**31
"""Of an array whose subscripts are computed in 32 bits: what is added to one stays below as much again."""
ADDRESS = "address"
"""The name of the function of a ``Call`` that is such a sum."""
Counted = tuple[tuple[Expr, int], ...]


def make_address(base: Expr, counted: Counted, constant: int) -> Call:
    """Return the sum as the subscript of a ``Load``."""
    terms = (Binary("*", v, Const(factor)) for v, factor in counted)
    return Call(ADDRESS, (base, *terms, Const(constant)), "uint64")


def address_parts(e: Expr) -> tuple[Expr, Counted, int] | None:
    """Return base, counted terms and constant of such a sum, or None for any other subscript."""
    match e:
        case Call(fn, (base, *terms, Const(int(constant)))) if fn == ADDRESS:
            return base, tuple(map(_counted, terms)), constant
    return None


def _counted(term: Expr) -> tuple[Expr, int]:
    match term:
        case Binary("*", variable, Const(int(factor))):
            return variable, factor
    raise AssertionError("a counted term is a variable times a constant")


def without_addresses(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements with such sums in 64 signed bits, as C has them."""

    def rule(n: Node) -> Node | None:
        if not (isinstance(n, Call) and n.fn == ADDRESS):
            return None
        total: Expr = Const(0, "int64")
        for part in n.args:
            total = add(total, Cast("int64", part)) if part != Const(0) else total
        return total

    made: tuple[Stmt, ...] = rewrite(rule, body)
    return made
