"""Unsigned subscripts of a CPU's kernels: computed once, at the beginning of the innermost loop that changes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.backends.numba_cpu.backend import NumbaCpu
from tests.helpers.reduction_cases import agrees_on_cpu, planned

TEXT = """
void f(int n, int m, int a[n], int x[n + 1][n + 1], int y[n + 1]) {{
  for (int i = m; i < n; i++) {{
    int s = a[i];
    int i__index = a[i - 1];
    for (int j = i; j < n; j++)
      if (m > 0)
        {body}
  }}
}}
"""

CASES = {
    "x[i][j] = x[i][j] + i__index;": ("        i__index = uintp(i)", "                j__index = uintp(j)"),
    "x[i - 1][j - i] = s;": ("        i_0__index = uintp(i - 1)", "                j_1__index = uintp(j - i)"),
    "y[m] = x[m][m + 1] + y[m];": ("    m__index = uintp(m)", "    fixed_0__index = uintp(m + 1)"),
    "y[(i + m) / 2] = j;": ("        i_1__index = uintp(c_div(int64((i + m)), int64(2)))",),
    "y[s] = j;": ("y[uintp(s)]",),
    "y[a[j]] = s;": ("y[uintp(int64(a[j__index]))]",),
    "y[i / m] = s;": ("y[uintp(c_div(int64(i), int64(m)))]",),
}


@pytest.mark.parametrize("body", CASES)
def test_a_subscript_is_computed_where_it_changes(body: str, tmp_path: Path) -> None:
    """Not where it depends on memory or on a scalar that is assigned, or may divide by zero; names are its own."""
    text = NumbaCpu(tmp_path).emit(planned(TEXT.format(body=body)))
    lines = text.splitlines()
    for expected in CASES[body]:
        assert (expected in lines) if " = " in expected else (expected in text), text


@pytest.mark.parametrize("body", list(CASES)[:2])
def test_subscripts_keep_their_values(body: str, tmp_path: Path) -> None:
    """A variable of the program that has such a name is another one."""
    text = TEXT.format(body=body)
    agrees_on_cpu(planned(text), text, [{"n": 7, "m": 1}, {"n": 5, "m": 2}], tmp_path)
