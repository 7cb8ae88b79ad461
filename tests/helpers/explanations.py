"""What ``looptune check`` says of a text, and texts with all that it can say."""

from __future__ import annotations

from looptune.frontend import load
from looptune.ir.nodes import Codelet, Scalar
from looptune.report.check.explanation import Explanation, explain
from looptune.schedule.directive_lines import parse_lines


def explained(text: str, *lines: str, everything: bool = False, reassociate: bool = True) -> Explanation:
    return explain(load(text), parse_lines(lines), everything=everything, reassociate=reassociate)


def integers(codelet: Codelet) -> list[str]:
    return [p.name for p in codelet.params if isinstance(p, Scalar) and p.dtype.startswith("int")]


HARD = """\
#include <math.h>
void f(int n, int p[n+1], float x[n], float y[n], float z[n]) {
  for (int i = 0; i < n; i++)
    z[p[i]] = y[i];
  for (int i = 0; i < n; i++)
    for (int k = p[i]; k < p[i + 1]; k++)
      z[k] = 1;
  for (int i = 0; i < n; i++)
    z[(int)floor(x[i])] = 1;
  for (int i = 0; i < n; i++)
    z[i * i] = 1;
  for (int i = 0; i < n; i++)
    while (x[i] > 1)
      x[i] /= 2;
  for (int i = 1; i < n; i++)
    if (y[i - 1] > 0)
      y[i] = 2 * y[i];
}
"""

ANNOTATED = """\
void f(int n, double A[n][n], double s[n], double B[n][n], int p[n]) {
  double sum = 0;
  #pragma hmppcg permute j, i
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n - 1; j++)
      A[i][j] = A[i - 1][j + 1];
  #pragma hmppcg parallel, reduce(max:sum)
  for (int i = 0; i < n; i++)
    sum += s[i];
  s[0] = sum;
  #pragma hmppcg parallel
  for (int i = 1; i < n; i++)
    #pragma hmppcg unroll 4, split, guarded
    for (int j = 0; j < n; j++)
      B[i][j] = B[i - 1][j];
  #pragma hmppcg tile i:4, j:4
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n - 1; j++)
      B[i][j] = B[i - 1][j + 1];
  #pragma hmppcg gridify(i, j)
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n; j++)
      B[i][j] = B[i - 1][j];
  #pragma hmppcg parallel, assume
  for (int i = 0; i < n; i++)
    s[p[i]] = 0;
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++)
    s[p[i]] = 0;
  #pragma hmppcg permute k, j, i
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n - 1; j++)
      for (int k = 0; k < n; k++)
        A[i][j] = A[i - 1][j + 1] + s[k];
  #pragma hmppcg unroll 2, split
  for (int i = 1; i < n; i++)
    s[i] = s[i - 1];
}
"""
