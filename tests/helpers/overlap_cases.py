"""Time loops, with directives that run their steps in overlapping tiles."""

from __future__ import annotations

from tests.helpers.kernel_cases import Case, sized

FIELDS = """
void f(int steps, int n, int m, float s[steps], float x[n][m + 1], float y[n + 1][m], float z[n][m]) {
  for (int t = 0; t < steps; t++) {
    for (int j = 0; j < m; j++) y[0][j] = s[t];
    for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) y[i][j] -= 0.5f * (z[i][j] - z[i - 1][j]);
    for (int i = 0; i < n; i++) for (int j = 1; j < m; j++) x[i][j] -= 0.5f * (z[i][j] - z[i][j - 1]);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < m; j++) z[i][j] -= 0.7f * (x[i][j + 1] - x[i][j] + y[i + 1][j] - y[i][j]);
  }
}
"""
LINE = """
void f(int steps, int n, float A[n], float B[n]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 2; i < n - 1; i++) B[i] = 0.25f * (A[i - 2] + A[i]) + 0.5f * A[i + 1];
    for (int i = 2; i < n - 1; i++) A[i] = B[i];
  }
}
"""
PLANE = """
void f(int steps, int n, int m, double A[n][m], double B[n][m]) {
  for (int t = 1; t <= steps; t++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++) B[i][j] = A[i][j] + A[i - 1][j] - A[i + 1][j] + A[i][j - 1] / 2 - A[i][j + 1];
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++) A[i][j] = B[i][j] / 4 + B[i - 1][j + 1] / t;
  }
}
"""
CUBE = """
void f(int steps, int n, int m, int l, float A[n][m][l], float B[n][m][l]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++) for (int k = 1; k < l - 1; k++)
      B[i][j][k] = A[i - 1][j][k] + A[i + 1][j][k] - 3 * A[i][j][k] + A[i][j - 1][k] + A[i][j][k + 1] / 2;
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++) for (int k = 1; k < l - 1; k++)
      A[i][j][k] = B[i][j][k] / 4 - B[i][j + 1][k - 1] / 8;
  }
}
"""
EDGES = """
void f(int steps, int n, int m, int w[n], float k[m][n], float A[n][m], float B[n][m]) {
  for (int t = 0; t < steps; t += 2) {
    for (int i = 0; i < n; i++) A[i][0] = A[i][1] * t;
    for (int i = 0; i < n; i++) A[i][m - 1] = A[i][m - 2];
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++) {
        float left = A[i][j - 1], right = A[i + 1][j + 1];
        if (A[i][j] > k[j][n - 1 - i] && w[i] > 0) B[i][j] = left - right;
        else B[i][j] = left + i * j;
      }
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++) A[i][j] = B[i][j] / (float)(i + t + 1);
  }
}
"""
WHOLE_NUMBERS = """
void f(int steps, int n, int m, unsigned char A[n][m], unsigned char B[n][m], short C[n][m]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < n - 1; i++) for (int j = 0; j < m; j++) B[i][j] = A[i][j] + A[i + 1][j] * C[i][j];
    for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = B[i - 1][j] + t;
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) C[i][j] = C[i][j] * 3 + A[i][j];
  }
}
"""
SHRINKING = """
void f(int steps, int n, int m, float A[n][m], float B[n][m]) {
  for (int t = 0; t < steps; t++) {
    for (int i = t; i < n; i++) for (int j = 0; j < m - 1; j++) B[i][j] = A[i][j] + A[i][j + 1];
    for (int i = t; i < n; i++) for (int j = i - t; j < m; j++) A[i][j] = B[i][j] / 2;
  }
}
"""
OWN = """
void f(int steps, int n, int m, float A[n][m]) {
  float T[n][m + 1], c = A[0][0];
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) T[i][j + 1] = A[i][j] * c;
    for (int i = 0; i < n; i++) for (int j = 1; j < m; j++) A[i][j] = T[i][j] - T[i][j + 1] / 2;
  }
}
"""
BORDERS = """
void f(int steps, int n, int m, float A[n][m], float S[n - 9][m - 13]) {
  for (int t = 0; t < steps; t++) {
    for (int j = 0; j < m; j++) A[0][j] = A[0][j] + t;
    for (int i = 0; i < n - 9; i++) S[i][0] = S[i][1] + A[i][0];
  }
}
"""
INNER = """
void f(int steps, int n, int m, float A[n][m], float B[n][m], float S[n - 9][m - 13]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) B[i][j] = A[i - 1][j];
    for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = B[i][j] / 2;
    for (int i = 0; i < n - 9; i++) S[i][0] = S[i][1] + A[i][0];
  }
}
"""
TWICE = """
void f(int steps, int n, int m, float A[n][m], float B[n][m]) {
  for (int r = 0; r < 2; r++) {
    for (int t = 0; t < steps; t++) {
      for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) B[i][j] = A[i - 1][j];
      for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = B[i][j] + r;
    }
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] *= 0.5f;
  }
}
"""
SMALL = "codelet: grid blocksize 8x4"
WIDE = "codelet: grid blocksize 16x4"
CASES = {
    "fields": Case(FIELDS, ("loop 1: overlap 2, rows 3", SMALL), sized((5, 30, 21), (4, 9, 40), (1, 3, 2), (0, 4, 4))),
    "fields, more than 48 KiB": Case(FIELDS, ("loop 1: overlap 2, rows 8, columns 4", "codelet: grid blocksize 32x8"),
                                     sized((3, 30, 21))),
    "fields, a step": Case(FIELDS, ("loop 1: overlap 1", SMALL), sized((3, 12, 17))),
    "fields, steps": Case(FIELDS, ("loop 1: overlap 5, rows 5", "codelet: grid blocksize 16x3"), sized((13, 29, 37))),
    "line": Case(LINE, ("loop 1: overlap 3", SMALL), sized((7, 100), (6, 33), (2, 3), (5, 5))),
    "plane": Case(PLANE, ("loop 1: overlap 1, rows 4", SMALL), sized((5, 17, 23), (2, 40, 9))),
    "plane, columns": Case(PLANE, ("loop 1: overlap 2, rows 9", "codelet: grid blocksize 32x1"), sized((5, 37, 61))),
    "cube": Case(CUBE, ("loop 1: overlap 1, rows 5", SMALL), sized((3, 9, 11, 7), (2, 4, 4, 4))),
    "cube, two": Case(CUBE, ("loop 1: overlap 2, rows 9", "codelet: grid blocksize 16x8"), sized((3, 12, 13, 17))),
    "line, columns": Case(LINE, ("loop 1: overlap 3, columns 3", SMALL), sized((7, 200))),
    "cube, columns": Case(CUBE, ("loop 1: overlap 1, rows 6, columns 2", "codelet: grid blocksize 8x8"),
                          sized((3, 12, 11, 17))),
    "edges": Case(EDGES, ("loop 1: overlap 2, rows 3", WIDE), sized((7, 20, 30), (8, 9, 9))),
    "edges, columns": Case(EDGES, ("loop 1: overlap 2, rows 3, columns 3", SMALL), sized((7, 20, 30))),
    "whole numbers": Case(WHOLE_NUMBERS, ("loop 1: overlap 3, rows 8", "codelet: grid blocksize 4x4"),
                          sized((7, 50, 20))),
    "where it runs changes": Case(SHRINKING, ("loop 1: overlap 2, rows 2", WIDE),
                                  sized((5, 20, 30))),
    "arrays of its own": Case(OWN, ("loop 1: overlap 2, rows 2", WIDE), sized((5, 20, 30))),
    "in another loop": Case(TWICE, ("loop t: overlap 2, rows 2", WIDE), sized((5, 20, 30))),
    "borders alone": Case(BORDERS, ("loop 1: overlap 2, rows 2", WIDE), sized((5, 37, 61), (3, 40, 33))),
    "arrays of other sizes": Case(INNER, ("loop 1: overlap 2, rows 2", WIDE), sized((5, 37, 61), (3, 40, 33))),
    "fused": Case(FIELDS, ("loop 3: fuse 2", "loop 4: fuse", "loop 1: overlap 2, rows 3", SMALL), sized((5, 30, 21))),
    "by columns": Case(FIELDS, ("nest 7: permute j, i", "loop 1: overlap 2, rows 3", SMALL), sized((5, 30, 21))),
    "two steps written out": Case(FIELDS, ("loop 1: unroll 2", "loop 1: overlap 1, rows 4", WIDE),
                                  sized((5, 30, 21))),
}  # fmt: skip
