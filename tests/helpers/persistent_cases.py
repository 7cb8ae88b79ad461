"""Codelets with directives that make one persistent launch of several."""

from __future__ import annotations

from tests.helpers.kernel_cases import Case, sized
from tests.helpers.overlap_cases import CUBE, EDGES, FIELDS, LINE, WHOLE_NUMBERS

STEPS = """
void f(int steps, int n, int m, float A[n][m], float B[n][m]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++) B[i][j] = 0.25f * (A[i][j - 1] + A[i][j + 1] + A[i - 1][j] + A[i + 1][j]);
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++) A[i][j] = B[i][j] + t;
  }
}
"""
COLUMNS = """
void f(int n, int m, double A[m][n], double R[n][n], double Q[m][n]) {
  for (int k = 0; k < n; k++) {
    double norm = 0;
    for (int i = 0; i < m; i++) norm += A[i][k] * A[i][k];
    R[k][k] = norm + 1;
    for (int i = 0; i < m; i++) Q[i][k] = A[i][k] / R[k][k];
    for (int j = k + 1; j < n; j++) {
      R[k][j] = 0;
      for (int i = 0; i < m; i++) R[k][j] += Q[i][k] * A[i][j];
      for (int i = 0; i < m; i++) A[i][j] -= Q[i][k] * R[k][j];
    }
  }
}
"""
ONE_THREAD = """
void f(int steps, int n, float A[n], float s[1]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < n; i++) A[i] = A[i] * 0.5f + s[0];
    s[0] = s[0] + A[t % 3] + A[n - 1];
  }
}
"""
CONDITIONS = """
void f(int steps, int n, int m, int A[n][m], int B[n][m]) {
  for (int r = 0; r < 2; r++) {
    for (int t = r; t < steps; t += 2) {
      for (int i = t; i < n; i++) for (int j = 0; j < m; j++) B[i][j] = A[n - 1 - i][m - 1 - j] + t;
      if (t > 1) {
        for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = B[i][j] + r;
      } else {
        for (int i = 0; i < n - t; i++) A[i][0] = B[i][m - 1];
      }
    }
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = A[i][j] * 3;
  }
}
"""
DEEP = """
void f(int steps, int n, int m, float A[5][n][m], float B[5][n][m]) {
  for (int t = 0; t < steps; t++) {
    for (int l = 0; l < 5; l++) for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) B[l][i][j] = A[4 - l][i][j] + t;
    for (int l = 0; l < 5; l++) for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[l][i][j] = B[l][i][m - 1 - j];
  }
}
"""
PRODUCTS = """
void f(int steps, int n, int m, float A[n][m], float B[m][n], float C[n][n]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        C[i][j] = 0;
        for (int k = 0; k < m; k++) C[i][j] += A[i][k] * B[k][j];
      }
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = A[i][j] - C[i][i] / 64;
  }
}
"""
SMALL, KEPT = "codelet: grid blocksize 8x4", "loop 1: persistent 8"
CASES = {
    "steps": Case(STEPS, ("loop 1: persistent", SMALL),
                  sized((5, 30, 21), (4, 9, 40), (1, 3, 3), (0, 4, 4), (3, 2, 2))),
    "steps, two blocks": Case(STEPS, ("loop t: persistent 2", SMALL), sized((3, 30, 21))),
    "columns": Case(COLUMNS, ("loop k: persistent", SMALL), ({"n": 13, "m": 17}, {"n": 1, "m": 1})),
    "columns, shared out": Case(
        COLUMNS, ("loop k: persistent", "loop 2: parallel", "loop 3: parallel, team", "loop 4: gridify(i, j)", SMALL),
        ({"n": 13, "m": 37},)),
    "columns, in parts": Case(
        COLUMNS, ("loop k: persistent 3", "loop 2: parallel", "loop 2: rfactor 4", SMALL), ({"n": 9, "m": 70},)),
    "one thread beside": Case(ONE_THREAD, ("loop 1: persistent", SMALL), sized((6, 70), (2, 3))),
    "conditions": Case(CONDITIONS, ("loop r: persistent", SMALL), sized((5, 20, 13), (3, 9, 9))),
    "conditions, inside": Case(CONDITIONS, ("loop t: persistent", SMALL), sized((5, 20, 13))),
    "three dimensions": Case(
        DEEP, ("loop 2: gridify(l, i, j)", "loop 5: gridify(l, i, j)", "loop 1: persistent", SMALL), sized((3, 7, 19))),
    "tiles in shared memory": Case(
        PRODUCTS, ("loop k: tile k:8", "loop k: stage A, B", "loop 1: persistent 2", "codelet: grid blocksize 8x8"),
        sized((3, 21, 30))),
    "tiles filled ahead": Case(
        PRODUCTS,
        ("loop k: tile k:8", "loop k: stage A, B, buffers 2", "loop 1: persistent", "codelet: grid blocksize 8x8"),
        sized((2, 17, 19))),
    "several steps at once": Case(
        STEPS, ("loop 1: overlap 2, rows 2", "loop 1: persistent", "codelet: grid blocksize 16x4"), sized((7, 30, 40))),
    **{f"tiles are kept, {name}": Case(text, (f"loop 1: {tiles}", *more, f"codelet: grid blocksize {block}"), sizes)
       for name, text, tiles, more, block, sizes in (
           ("steps", STEPS, "overlap 2, rows 2, columns 2", (KEPT,), "8x4", sized((9, 21, 30), (12, 30, 17))),
           ("in vectors", STEPS, "overlap 4, rows 4, columns 4", (KEPT, "codelet: vectorize"), "4x4",
            sized((9, 21, 16), (11, 20, 17))),
           ("too many", STEPS, "overlap 2, rows 2, columns 2", ("loop 1: persistent",), "8x4", sized((9, 21, 30))),
           ("wide blocks", STEPS, "overlap 2, rows 3, columns 2", (KEPT,), "64x4", sized((7, 30, 121))),
           ("fields", FIELDS, "overlap 2, rows 3, columns 3", (KEPT,), "8x4", sized((7, 24, 41), (5, 11, 50))),
           ("line", LINE, "overlap 3, columns 2", (KEPT,), "8x4", sized((17, 200))),
           ("cube", CUBE, "overlap 1, rows 8, columns 2", (KEPT,), "8x8", sized((5, 12, 11, 17))),
           ("cube, too many", CUBE, "overlap 1, rows 6", ("loop 1: persistent",), "16x8", sized((4, 12, 11, 17))),
           ("edges", EDGES, "overlap 2, rows 3, columns 2", (KEPT,), "8x4", sized((9, 21, 27))),
           ("whole numbers", WHOLE_NUMBERS, "overlap 2, rows 3, columns 2", (KEPT,), "8x4", sized((9, 30, 27))),
       )},
    "unrolled": Case(STEPS, ("loop 3: unroll 3, jam", "loop 4: unroll 2", "loop 1: persistent", SMALL),
                     sized((4, 19, 23))),
    "steps written out": Case(STEPS, ("loop 1: unroll 2", "loop 1: persistent", SMALL), sized((5, 12, 12))),
}  # fmt: skip
