"""A part of a place may be negative: kernels find the element all the same. Arrays too large to count are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case

PLACES = {
    "remainder": "A[(t - 7) % 8 + 7]",
    "quotient": "A[(t - 9) / 2 + 5]",
    "product": "A[(n - 9) * (m - 2) + 9 + t]",
    "difference of products": "A[(n - 9) * 2 - (m - 7) * t + 20]",
    "minimum": "A[(t - 3 < m - 7 ? t - 3 : m - 7) + 8]",
    "maximum": "A[(t - 3 > m - 9 ? t - 3 : m - 9) + 9]",
    "negation": "A[-(t % 3) + 4]",
    "unsigned": "A[(unsigned)(t - 7) + 7u]",
    "large unsigned": "A[(unsigned)t + 4294967295u + 2u]",
    "a row": "B[(t - 7) % 8 + 7][2]",
    "a column": "B[1][(t - 7) % 8 + 7]",
    "chosen": "A[(t % 2 ? -t : t) + 9]",
    "shifted": "A[((t - 4) >> 1) + 3]",
}


@pytest.mark.long
@pytest.mark.wide
def test_places_with_negative_parts(tmp_path: Path) -> None:
    """Quotients, remainders, products, extremes, used several times and with constants, in every kernel."""
    cases = []
    for name, place in PLACES.items():
        for loop in ("for (int t = 0; t < n; t++)", "for (int t = -2; t < n; t++)"):
            if "unsigned" in place and "-2" in loop:
                continue
            body = f"{{ {place} += t; x[t + 2] = {place} + {place.replace(']', ' + 1]', 1)}; }}"
            text = f"void f(int n, int m, int A[64], int B[16][16], int x[16])\n{{ {loop} {body} }}\n"
            given: cross_check.Arguments = {"n": 5, "m": 3, "A": np.arange(64, dtype=np.int32)}
            given |= {"B": np.arange(256, dtype=np.int32).reshape(16, 16), "x": np.zeros(16, np.int32)}
            ways = all_targets.ALL if name in ("remainder", "product") and "-2" in loop else all_targets.QUICK
            cases.append(Case(f"{name} {loop}", text, [given], (), ways))
    assert not all_targets.wrong(cases, tmp_path)


NEGATED = """void f(int n, int m, long b[n], int c[n])
{
  for (int l = 0; l < n; l++) {
    b[l] += (-l > m ? -l : 1) * 3;
    c[l] = ~l + (-(long)l < 0);
  }
}
"""


@pytest.mark.wide
@pytest.mark.simulator
def test_a_loop_variable_has_a_negative(tmp_path: Path) -> None:
    """Kernels hold loop variables in unsigned types; minus and complement are those of C's type all the same."""
    given = [{"n": n, "m": m, "b": np.arange(9, dtype=np.int64)[:n], "c": np.zeros(n, np.int32)}
             for n, m in ((9, -4), (5, 3), (1, 0))]  # fmt: skip
    assert not all_targets.wrong([all_targets.Case("negated", NEGATED, given)], tmp_path)
