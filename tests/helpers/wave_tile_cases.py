"""Nests that blocks of threads run wave by wave or step by step, with sizes that no tile divides."""

from __future__ import annotations

from tests.helpers.kernel_cases import Case, sized

SEIDEL = """void f(int steps, int n, int m, float A[n][m])
{
  int t, i, j;
  for (t = 0; t < steps; t++)
    for (i = 1; i < n - 1; i++)
      for (j = 1; j < m - 1; j++)
        A[i][j] = (A[i-1][j-1] + A[i-1][j] + A[i-1][j+1] + A[i][j-1] + A[i][j] + A[i][j+1]
                 + A[i+1][j-1] + A[i+1][j] + A[i+1][j+1]) / 9.0f;
}
"""
SUMS = """void f(int steps, int n, int m, float A[n][m])
{
  for (int i = 1; i < n; i++)
    for (int j = 1; j < m; j++)
      A[i][j] = 0.5f * A[i-1][j] + 0.25f * A[i][j-1];
}
"""
LINE = """void f(int steps, int n, int m, float A[n], float B[n])
{
  for (int t = 0; t < steps; t++)
    for (int i = 1; i < n - 1; i++)
      A[i] = 0.5f * A[i-1] + 0.25f * A[i+1] + B[i];
}
"""
TABLE = """void f(int steps, int n, int m, float D[n][m], float X[n], float Y[m])
{
  for (int i = 1; i < n; i++)
    for (int j = 1; j < m; j++)
      D[i][j] = fminf(D[i-1][j-1] + X[i] * Y[j], fminf(D[i-1][j], D[i][j-1]) + 1.0f);
}
"""
CLIPPED = """void f(int steps, int n, int m, float D[n][m], float X[n], float Y[m])
{
  for (int i = 1; i < n; i++)
    for (int j = 1; j < m; j++)
      if (D[i-1][j] > X[i] && (Y[j] > 0.7f || D[i][j-1] < 1.0f))
        D[i][j] = (j > 3 ? D[i][j-3] : 0.5f) * 0.5f + D[i-1][j-1];
}
"""
OFTEN = """void f(int steps, int n, int m, float D[n][m], float X[n])
{
  for (int r = 0; r < steps; r++) {
    for (int i = 1; i < n; i++)
      for (int j = 1; j < m; j++)
        D[i][j] = 0.5f * D[i-1][j] + 0.25f * D[i][j-1] + X[i];
    for (int i = 0; i < n; i++)
      X[i] = D[i][m - 1] * 0.5f;
  }
}
"""
BATCH = """void f(int steps, int n, int m, float A[n][7][7])
{
  for (int b = 0; b < n; b++)
    for (int k = 0; k < 7; k++) {
      for (int i = k + 1; i < 7; i++) A[b][i][k] /= A[b][k][k] + 3.0f;
      for (int i = k + 1; i < 7; i++)
        for (int j = k + 1; j < 7; j++) A[b][i][j] -= A[b][i][k] * A[b][k][j];
    }
}
"""
SKEWED = "nest t: skew i by t, j by 2*t + i"
LONG = """void f(int steps, int n, int m, short A[n][m])
{
  for (long i = n - 2; i >= 0; i--)
    for (long j = 1; j < m; j++)
      if (i + j > 2)
        A[i][j] = A[i+1][j] * 3 + A[i][j-1];
}
"""
CASES = {
    "seidel": Case(
        SEIDEL, (SKEWED, "nest t: wavefront t, i, j, tile 3, 4, 5, team", "codelet: grid blocksize 4x3"),
        sized((7, 13, 17), (2, 3, 4), (4, 2, 9)),
    ),
    "seidel, staged": Case(
        SEIDEL,
        (SKEWED, "nest t: wavefront t, i, j, tile 3, 4, 5, team", "codelet: grid blocksize 4x3", "loop t: stage A"),
        sized((7, 13, 17), (2, 3, 4), (4, 2, 9), (5, 30, 7)),
    ),
    "seidel, staged, other blocks": Case(
        SEIDEL,
        (SKEWED, "nest t: wavefront t, i, j, tile 2, 8, 8, team", "codelet: grid blocksize 8x4", "loop t: stage A"),
        sized((5, 21, 19)),
    ),
    "seidel, staged, wave by wave of the last loop": Case(
        SEIDEL,
        ("nest t: skew i by t, j by 4*t + 2*i", "nest t: wavefront t, i, j, tile 3, 4, 5, team:j",
         "codelet: grid blocksize 4x3", "loop t: stage A"),
        sized((7, 13, 17), (2, 3, 4), (4, 2, 9)),
    ),
    "sums, staged": Case(
        SUMS, ("loop i: wavefront i, j, tile 4, 6, team", "codelet: grid blocksize 4x1", "loop i: stage A"),
        sized((1, 11, 14), (1, 1, 5)),
    ),
    "sums, staged, more than 48 KiB": Case(
        SUMS, ("loop i: wavefront i, j, tile 64, 256, team", "codelet: grid blocksize 16x1", "loop i: stage A"),
        sized((1, 70, 30)),
    ),
    "sums, a wave in order": Case(
        SUMS, ("loop i: wavefront i, j, tile 4, 6, team:j", "codelet: grid blocksize 4x1", "loop i: stage A"),
        sized((1, 11, 14)),
    ),
    "one launch of many waves": Case(
        OFTEN,
        ("loop r: persistent", "loop 2: skew j by i", "loop 2: wavefront i, j, tile 4, 6, team:j", "loop 2: stage D, X",
         "codelet: grid blocksize 4x1"),
        sized((3, 11, 14)),
    ),
    "a line, staged": Case(
        LINE,
        ("loop t: skew i by 2*t", "loop t: wavefront t, i, tile 4, 16, team", "codelet: grid blocksize 4x1",
         "loop t: stage A"),
        sized((9, 40, 1), (3, 2, 1)),
    ),
    "a table, staged": Case(
        TABLE,
        ("loop i: skew j by i", "loop i: wavefront i, j, tile 8, 8, team:j", "codelet: grid blocksize 8x1",
         "loop i: stage D"),
        sized((1, 21, 18)),
    ),
    "conditions on data, all staged": Case(
        CLIPPED,
        ("loop i: wavefront i, j, tile 4, 8, team", "codelet: grid blocksize 4x1", "loop i: stage D, X, Y"),
        sized((1, 21, 18), (1, 5, 3)),
    ),
    "variables that are long, sizes for which nothing runs": Case(
        LONG, ("loop i: wavefront i, j, tile 3, 5, team", "codelet: grid blocksize 3x1", "loop i: stage A"),
        sized((1, 11, 14), (1, 2, 3), (1, 0, 7)),
    ),
    "an elimination for each block, staged": Case(
        BATCH,
        ("loop 2: noParallel, team", "loop 3: parallel, team", "loop 4: parallel, team", "loop 5: parallel, team",
         "loop 2: stage A", "codelet: grid blocksize 4x3"),
        sized((1, 5, 1), (1, 1, 1), (1, 0, 1)),
    ),
}  # fmt: skip
