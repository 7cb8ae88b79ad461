"""A place in global memory as what varies, what the loops of a thread count, and a constant.

    A[i - 1][4 * k + j + 1]  ==>  uint32(m * i + j)  +  k * 4  -  m  +  1      the first in 32 bits, the others in 64

In 32 bits each sum could wrap, so that a compiler has to compute every place for itself. In 64 it cannot, and what is
added becomes a part of the instruction that loads or stores, or of the next one's where a loop is unrolled. The first
sum is not negative, and stays below 2^32 because no array has more than 2^31 elements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from looptune.ir.intervals import affine_terms, may_wrap, never_negative
from looptune.ir.nodes import Binary, Const, Expr, Var
from looptune.ir.simplify import add, mul, sub


@dataclass(frozen=True, slots=True)
class Address:
    """``base + sum of variable * factor over counted + constant``."""

    base: Expr
    counted: tuple[tuple[Var, int], ...]
    constant: int

    @property
    def is_single(self) -> bool:
        """Nothing is added to anything."""
        factors = [1] * (self.base != Const(0)) + [factor for _, factor in self.counted]
        return not factors or (factors == [1] and self.constant == 0)


def split_address(
    e: Expr, counted: Collection[str], nonnegative: Collection[str], most: Mapping[str, int]
) -> Address | None:
    """None where the base may be negative, or the sum may wrap by C's rules.

    ``counted``, ``nonnegative``: names of variables; ``most``: what some of
    these are at most."""
    if may_wrap(e, nonnegative):
        return None
    terms, constant = affine_terms(e)
    base: Expr = Const(0)
    found = []
    for term, factor in terms.items():
        if factor < 0:
            bound = upper_bound(term, nonnegative, most)
            if bound is None:
                return None
            # Not negative, with as much of the constant as that takes.
            base, constant = add(base, mul(Const(-factor), sub(Const(bound), term))), constant + factor * bound
        elif not never_negative(term, nonnegative):
            return None
        elif isinstance(term, Var) and term.name in counted:
            found.append((term, factor))
        else:
            base = add(base, mul(Const(factor), term))
    if base == Const(0) and constant < 0:
        return None
    return Address(base, tuple(found), constant)


def upper_bound(e: Expr, nonnegative: Collection[str], most: Mapping[str, int]) -> int | None:
    """Of what is not negative; None where it is not seen."""
    match e:
        case Binary("%", lhs, Const(int(n))) if n > 0 and never_negative(lhs, nonnegative):
            return n - 1
        case Var(name) if name in nonnegative:
            return most.get(name)
    return None


def lower_bound(e: Expr, nonnegative: Collection[str], least: Mapping[str, int]) -> int | None:
    """Return a lower bound of ``e`` that is visible from its form.

    ``least``: lower bounds of some variables; the others are not negative.

    >>> i, n = Var("i"), Var("n")
    >>> e = mul(sub(i, Const(1)), n)
    >>> lower_bound(e, {"i", "n"}, {"i": 1}), lower_bound(e, {"i", "n"}, {})
    (0, None)
    """
    match e:
        case Var(name) if name in least:
            return least[name]
        case Binary("-", lhs, Const(int(n))) if e.dtype in ("int32", "int64"):
            first = lower_bound(lhs, nonnegative, least)
            return None if first is None else first - n
        case Binary("+" | "*" as op, lhs, rhs) if e.dtype in ("int32", "int64"):
            a, b = lower_bound(lhs, nonnegative, least), lower_bound(rhs, nonnegative, least)
            if a is None or b is None or (op == "*" and (a < 0 or b < 0)):
                return None
            return a + b if op == "+" else a * b
        case Const(int(n)):
            return n
    return 0 if never_negative(e, nonnegative) else None
