"""Programs on arrays of ``_Float16``, with directives under which they run, and sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check

GEMM = """
void gemm(int n, int m, _Float16 alpha, _Float16 a[n][m], _Float16 b[m][n], float c[n][n])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int k = 0; k < m; k++)
        sum += (float)a[i][k] * b[k][j];
      c[i][j] += alpha * sum;
    }
}
"""
STENCIL = """
#define DATA_TYPE half
typedef _Float16 half;
void stencil(int t, int n, DATA_TYPE A[n][n], DATA_TYPE B[n][n])
{
  for (int s = 0; s < t; s++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        B[i][j] = (half)0.2 * (A[i][j] + A[i][j-1] + A[i][1+j] + A[1+i][j] + A[i-1][j]);
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        A[i][j] = 0.2 * (B[i][j] + B[i][j-1] + B[i][1+j] + B[1+i][j] + B[i-1][j]);
  }
}
"""
STEPS = """
void steps(int t, int n, int m, _Float16 A[n][m], _Float16 B[n][m])
{
  for (int s = 0; s < t; s++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++)
        B[i][j] = 0.3f * A[i][j] + A[i-1][j] * 0.3f + A[i][j+1];
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++)
        A[i][j] = B[i][j];
  }
}
"""
DOT = """
void dot(int n, const _Float16 x[n], const _Float16 y[n], float r[1], _Float16 h[2])
{
  float s = 0;
  for (int i = 0; i < n; i++)
    s += (float)x[i] * y[i];
  r[0] = s;
  h[0] = s;
  _Float16 t = 0;
  for (int i = 0; i < n; i++)
    t += x[i] * y[i];
  h[1] = t;
}
"""
SMALL = "codelet: grid blocksize 8x4"
CASES: Mapping[str, tuple[str, Mapping[str, int | float], tuple[str, ...]]] = {
    "gemm": (GEMM, {"n": 13, "m": 24, "alpha": 0.1}, ()),
    "gemm in tiles": (GEMM, {"n": 13, "m": 24, "alpha": 0.1}, ("loop k: tile 8", "loop k: stage a, b", SMALL)),
    "gemm, tiles ahead": (
        GEMM, {"n": 16, "m": 32, "alpha": 0.1},
        ("loop j: unroll 2, split, jam", "loop k: tile 8", "loop k: stage a, b, buffers 2, unroll 4", SMALL),
    ),
    "gemm, 8 elements at a time": (
        GEMM, {"n": 32, "m": 32, "alpha": 0.1},
        ("loop j: unroll 2, contiguous, jam", "loop k: tile 16", "loop k: stage a, b, buffers 2",
         "codelet: grid blocksize 8x8", "codelet: vectorize"),
    ),
    "stencil": (STENCIL, {"t": 3, "n": 17}, ()),
    "stencil in tiles": (STENCIL, {"t": 3, "n": 17}, ("loop 2: stage A", "loop 4: stage B", "loop 5: unroll 2", SMALL)),
    "stencil, persistent": (STENCIL, {"t": 3, "n": 17}, ("loop s: persistent", SMALL)),
    "dot": (DOT, {"n": 37}, ()),
    "dot by a team": (DOT, {"n": 37}, ("loop 1: parallel, team", "codelet: grid blocksize 8x1")),
    "dot in parts": (DOT, {"n": 37}, ("loop 1: rfactor 5", SMALL)),
    "steps at once": (STEPS, {"t": 5, "n": 30, "m": 21}, ("loop 1: overlap 2, rows 3", SMALL)),
    "steps at once, kept": (
        STEPS, {"t": 9, "n": 21, "m": 30},
        ("loop 1: overlap 2, rows 2, columns 2", "loop 1: persistent 8", "codelet: vectorize", SMALL),
    ),
}  # fmt: skip


SPECIALIZED = frozenset({"gemm, 8 elements at a time"})


def planned(text: str, lines: tuple[str, ...], sizes: Mapping[str, int | float] | None = None) -> Plan:
    """``sizes``: constants, which tell that rows begin at multiples of 16 bytes."""
    codelet = load(text).codelet
    if sizes is not None:
        codelet = specialize(codelet, {n: v for n, v in sizes.items() if isinstance(v, int)})
    return lower(schedule(Analysis(codelet), parse_lines(lines)).codelet, "\n".join(lines), blocks=True)


def given_for(text: str, sizes: Mapping[str, int | float]) -> cross_check.Arguments:
    """Sixteenths, whose float sums are exact in any order: what is left is rounding to half."""
    made = cross_check.arguments(load(text).codelet, sizes)
    return {name: np.abs(v) / 4 if isinstance(v, np.ndarray) else v for name, v in made.items()}


def equal(want: dict[str, np.ndarray], got: dict[str, np.ndarray] | str, name: str) -> None:
    assert isinstance(got, dict), got
    for array, expected in want.items():
        np.testing.assert_array_equal(got[array], expected, err_msg=f"{name}: {array}")
