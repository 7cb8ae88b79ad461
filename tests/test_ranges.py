"""Choices that the ranges of loops decide: what is left computes the same, and is no more than it has to be."""

from __future__ import annotations

import oracle
import pytest

from looptune import pretty
from looptune.analysis import Analysis
from looptune.bake import bake
from looptune.errors import DirectiveError, IllegalTransform
from looptune.frontend import load
from looptune.frontend.placed import parse_lines
from looptune.schedule import schedule

NEST = """
void f(int n, int m, double A[n][m], double B[m][n])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] += 2 * B[j][i]; }
"""
TRIANGLE = """
void f(int n, int m, double A[n][m], double B[m][n])
{ for (int i = 0; i < n; i++) for (int j = i; j < m; j++) if (j >= i) if (j - i < m) A[i][j] += B[j][i]; }
"""
UNSIGNED = """
void f(int n, int m, double A[n][m], double B[m][n])
{ for (unsigned int i = 0; i < n; i++) for (int j = 0; j < m; j++) if (i - 1 < n) A[i][j] += B[j][i]; }
"""
LINES = (
    (), ("loop i: tile 4",), ("loop i: tile i:3, j:4",), ("loop j: unroll 2, guarded",), ("loop i: unroll 3, jam",),
    ("loop i: unroll 2, split, guarded, jam", "loop j: tile 5"), ("nest i: permute j, i",),
)  # fmt: skip


@pytest.mark.parametrize("text", [NEST, TRIANGLE, UNSIGNED], ids=["nest", "triangle", "unsigned"])
@pytest.mark.parametrize("sizes", [(8, 8), (12, 20), (7, 5), (1, 1), (2, 9)], ids=str)
def test_constant_sizes_change_nothing(text: str, sizes: tuple[int, int]) -> None:
    """Baked trees leave the bits of the original, for sizes the factors divide and for others."""
    analysis = Analysis(load(text).codelet)
    known = {"n": sizes[0], "m": max(sizes)}
    for lines in LINES:
        try:
            done = schedule(analysis, parse_lines(lines)).codelet
        except (DirectiveError, IllegalTransform):
            continue
        given = oracle.arguments(analysis.codelet, known)
        want = oracle.interpreted(analysis.codelet, given)
        assert oracle.off(want, oracle.interpreted(bake(done, known), given)) is None, lines


def test_what_divides_needs_no_minimum_and_no_guard() -> None:
    """Strips that come out even end where they end; a guard that always holds is gone; others stay."""
    analysis = Analysis(load(NEST).codelet)
    even = bake(schedule(analysis, parse_lines(["loop i: tile 4"])).codelet, {"n": 8, "m": 5})
    assert "?" not in pretty.body(even)
    ragged = bake(schedule(analysis, parse_lines(["loop i: tile 4"])).codelet, {"n": 9, "m": 5})
    assert "? 4 * outer_i + 4 : 9" in pretty.body(ragged)
    triangle = bake(Analysis(load(TRIANGLE).codelet).codelet, {"n": 8, "m": 8})
    assert pretty.body(triangle).count("if") == 1
    unsigned = bake(Analysis(load(UNSIGNED).codelet).codelet, {"n": 8, "m": 8})
    assert pretty.body(unsigned).count("if") == 1
