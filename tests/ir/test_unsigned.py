"""Unsigned arithmetic wraps, and nothing simplifies it as if it did not."""

from __future__ import annotations

import pytest

from looptune.ir.c_printer import expression_text
from looptune.ir.intervals import range_of
from looptune.ir.nodes import Binary, Const, Expr, Var
from looptune.ir.simplify import add, div, fold, mod, mul, sub
from looptune.schedule.directives.jam import implies

U, J = Var("u", "uint32"), Var("i", "int32")


def u(value: int) -> Const:
    return Const(value, "uint32")


KEPT: dict[str, Expr] = {
    "2u * u == 0u": fold(Binary("==", mul(u(2), U), u(0))),
    "3u * u + 1u == 2u": fold(Binary("==", add(mul(u(3), U), u(1)), u(2))),
    "4u * u / 2u": div(mul(u(4), U), u(2)),
    "4u * u % 2u": mod(mul(u(4), U), u(2)),
    "i + 2147483647 + 1": add(add(J, Const(2**31 - 1)), Const(1)),
}


@pytest.mark.parametrize("text", KEPT)
def test_what_wraps_or_would_not_fit_is_kept(text: str) -> None:
    """Products of unsigned numbers may be zero, and a sum of constants has to be one of their type."""
    assert expression_text(KEPT[text]) == text


MADE: dict[str, Expr] = {
    "i": fold(Binary("==", mul(Const(2), J), Const(0))).lhs,  # type: ignore[union-attr]
    "u + 1u": add(add(U, u(2**32 - 1)), u(2)),
    "u - 2u": add(sub(U, u(3)), u(1)),
    "u - 1u": sub(sub(U, u(3)), u(2**32 - 2)),
    "i * 2": div(mul(Const(4), J), Const(2)),
}


@pytest.mark.parametrize("text", MADE)
def test_sums_wrap_whatever_their_order(text: str) -> None:
    """Constants of unsigned sums are added modulo a power of two; those of signed ones as numbers."""
    assert expression_text(MADE[text]) == text


def test_a_range_that_wraps_is_not_known() -> None:
    """Of unsigned differences a range is known where it has no negative number."""
    assert range_of(sub(U, u(3)), {"u": (1, 9)}) is None
    assert range_of(sub(U, u(3)), {"u": (3, 9)}) == (0, 6)
    assert range_of(sub(J, Const(3)), {"i": (1, 9)}) == (-2, 6)


def test_a_comparison_that_wraps_implies_no_other() -> None:
    """i - 2u < 4u holds where i is 2, and i - 3u < 4u does not; of signed ones the one implies the other."""
    assert not implies(Binary("<", sub(U, u(2)), u(4)), Binary("<", sub(U, u(3)), u(4)))
    assert implies(Binary("<", sub(J, Const(2)), Const(4)), Binary("<", sub(J, Const(3)), Const(4)))
