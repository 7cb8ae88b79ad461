"""Loops that isl generates run each iteration once, or are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.ir.nodes import Const, Expr
from looptune.ir.simplify import add, sub
from looptune.poly import loop_generation
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines

NARROW = """
void f(long m, unsigned A[24]) {
  for (short q = m - 1; q >= 0; q -= 3) {
    signed char part[8];
    for (int p = 0; p < 8; p++) part[p] = 1;
    A[q] = part[q];
  }
}
"""
"""isl generates a copy back of three elements for it, of the eight that may have to be copied."""
PLAIN = """
void f(int n, float A[n][n]) {
  for (int t = 0; t < n; t++)
    for (int i = 1; i < n; i++) A[t][i] = A[t][i - 1] + 1;
}
"""
LOST = "isl makes loops that do not run every iteration once"


def refusal(text: str, line: str) -> str:
    with pytest.raises(DirectiveError) as refused:
        schedule(Analysis(load(text).codelet), parse_lines([line]))
    return refused.value.message


def test_iterations_that_isl_loses_are_noticed() -> None:
    assert refusal(NARROW, "loop 1: expand A") == f"expand A: {LOST}"


@pytest.mark.parametrize("line", ["loop 1: schedule", "loop 1: skew i by t", "loop 1: shift i by 1"])
@pytest.mark.parametrize("change", [add, sub])
def test_one_iteration_more_or_less_is_noticed(
    line: str, change: Callable[[Expr, Expr], Expr], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = loop_generation._Generator._end

    def wrong(self: Any, cond: Any, values: Mapping[str, Expr]) -> Expr:
        end = right(self, cond, values)
        return change(end, Const(1, end.dtype))

    monkeypatch.setattr(loop_generation._Generator, "_end", wrong)
    assert LOST in refusal(PLAIN, line)
