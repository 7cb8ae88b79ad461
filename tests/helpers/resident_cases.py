"""Codelets whose threads keep the elements that they own through a loop."""

from __future__ import annotations

from tests.helpers.kernel_cases import Case, sized

PATHS = """
void f(int n, int A[n][n]) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        A[i][j] = A[i][j] < A[i][k] + A[k][j] ? A[i][j] : A[i][k] + A[k][j];
}
"""
LU = """
void f(int n, double A[n][n]) {
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++) A[i][k] = A[i][k] / (A[k][k] + 40);
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++) A[i][j] -= A[i][k] * A[k][j];
  }
}
"""
TRIANGLE = """
void f(int n, float A[n][n], float x[n]) {
  for (int k = 0; k < n; k++) {
    A[k][k] = A[k][k] * 0.5f + x[k];
    for (int i = k + 1; i < n; i++) A[i][k] = A[i][k] * A[k][k];
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j <= i; j++) A[i][j] -= A[i][k] * A[j][k] * x[j];
  }
}
"""
ROOTS = """
void f(int n, double A[n][n]) {
  for (int k = 0; k < n; k++) {
    A[k][k] = sqrt(A[k][k] * A[k][k] + 9);
    for (int i = k + 1; i < n; i++) {
      A[i][k] = A[i][k] / A[k][k];
      A[i][i] -= A[i][k] * A[i][k];
    }
    for (int i = k + 2; i < n; i++)
      for (int j = k + 1; j < i; j++) A[i][j] -= A[i][k] * A[j][k] + A[j][j] / 99;
  }
}
"""
LINE = """
void f(int n, double x[n], double L[n][n]) {
  for (int k = 0; k < n; k++)
    for (int i = k + 1; i < n; i++) x[i] -= L[i][k] * x[k] / 64;
}
"""
TWO = """
void f(int steps, int n, int m, int A[n][m], int B[n][m]) {
  for (int t = 1; t < steps; t += 2) {
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) B[i][j] = A[i][j] + A[n - 1 - i][j] + t;
    for (int i = 0; i < n; i++) for (int j = 1; j < m; j++) A[i][j] = B[i][j] - B[i][0] * t;
  }
}
"""
SCALARS = """
void f(int n, double A[n][n], double x[n]) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i];
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        if (j > k) A[i][j] = A[i][j] / 2 + s * A[i][k];
}
"""
REPEATED = """
void f(int steps, int n, float A[n][n]) {
  for (int t = 0; t < steps; t++) {
    for (int k = 1; k < n; k++)
      for (int i = 0; i < n; i++) for (int j = k; j < n; j++) A[i][j] = A[i][j] * 0.5f + A[i][k - 1] + k;
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) A[i][j] = A[i][j] - A[0][0] * t;
  }
}
"""
SPLIT = ("loop i: splitat k, k + 1", "loop j: splitat k, k + 1")
SMALL, MANY = "codelet: grid blocksize 8x4", "loop 1: persistent 16"
CASES = {
    "paths": Case(PATHS, (*SPLIT, "loop 1: resident rows 2, columns 2", MANY, SMALL), (
        {"n": 37}, {"n": 1}, {"n": 0}, {"n": 16})),
    "paths, in shared memory": Case(
        PATHS, (*SPLIT, "loop 1: resident rows 3, columns 2, shared 1", MANY, SMALL), ({"n": 41}, {"n": 12})),
    "paths, cyclic": Case(PATHS, (*SPLIT, "loop 1: resident rows 3, columns 2, cyclic", MANY, SMALL), ({"n": 43},)),
    "paths, too many": Case(PATHS, (*SPLIT, "loop 1: resident rows 2", "loop 1: persistent", SMALL),
                            ({"n": 37}, {"n": 22})),
    "lu": Case(LU, ("loop 1: resident rows 2, columns 3", MANY, SMALL), ({"n": 35}, {"n": 2})),
    "lu, cyclic": Case(LU, ("loop 1: resident rows 4, columns 2, cyclic, shared 2", MANY, SMALL), ({"n": 35},)),
    "triangle": Case(TRIANGLE, ("loop 1: resident rows 2, columns 2, cyclic", MANY, SMALL), ({"n": 29},)),
    "roots": Case(ROOTS, ("loop 1: resident rows 3, columns 2", MANY, SMALL), ({"n": 31},)),
    "line": Case(LINE, ("loop 1: resident columns 2", MANY, SMALL), ({"n": 150}, {"n": 3})),
    "a scalar in memory": Case(
        SCALARS, ("loop k: resident rows 3, columns 2", "loop k: persistent 8", SMALL), ({"n": 19},)),
    "in a launch of more": Case(
        REPEATED, ("loop k: resident rows 2, columns 2", "loop 1: persistent 4", SMALL), sized((3, 25), (2, 2))),
    "two arrays": Case(TWO, ("loop 1: resident rows 2, columns 2", MANY, SMALL), sized((8, 21, 30), (5, 1, 2))),
}  # fmt: skip
