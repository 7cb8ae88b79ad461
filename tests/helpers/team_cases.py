"""Codelets with directives that share loops among the threads of a block."""

from __future__ import annotations

from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from tests.helpers.reduction_cases import scheduled
from tests.helpers.team_reduction_cases import Case, sized

UNIT = """
void f(int n, double x[n], double y[n], double s[2]) {
  double t = 0;
  for (int i = 0; i < n; i++) t += x[i] * x[i];
  s[0] = sqrt(t);
  for (int j = 0; j < n; j++) y[j] = x[j] / s[0];
  s[1] = y[n - 1];
}
"""
TURNED = """
void f(int n, double x[n], double y[n], double z[n]) {
  for (int i = 0; i < n; i++) y[i] = 2 * x[i];
  for (int j = 0; j < n; j++) z[j] = y[n - 1 - j];
  for (int k = 0; k < n; k++) x[k] = z[k] + z[0];
}
"""
ROWS = """
void f(int n, double A[n][n], double x[n]) {
  for (int i = 0; i < n; i++) {
    x[i] = 1 / (2 + x[i] * x[i]);
    for (int j = 0; j <= i; j++) A[i][j] *= x[i];
    x[i] = A[i][0];
  }
}
"""
COLUMNS = """
void f(int n, int m, double A[n][m], double x[n]) {
  for (int k = 0; k < m; k++) {
    for (int i = 0; i < n; i++) x[i] = A[i][k] / (k + 1);
    for (int j = k; j < m; j++)
      for (int i = 0; i < n; i++) A[i][j] += x[i] * x[n - 1 - i];
  }
}
"""
COUNTED = """
void f(int n, int c[1], double x[n], double y[n]) {
  int last = c[0] > n ? n : c[0];
  for (int i = 0; i < last; i++) y[i] = x[i];
}
"""
OWN = """
void f(int n, double x[n], double y[n]) {
  for (int i = 0; i < n; i++) {
    double t[2];
    t[0] = x[i];
    t[1] = t[0] * x[i];
    for (int j = 0; j < 2; j++) y[i] += t[j];
  }
}
"""
BATCH = """
void f(int n, int m, double A[n][m][m], double x[n][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      double t = 0;
      for (int k = 0; k <= j; k++) t += A[i][j][k] * A[i][j][k];
      x[i][j] = sqrt(t);
      for (int k = 0; k <= j; k++) A[i][j][k] /= x[i][j];
    }
}
"""
DEEP = """
void f(int n, int m, double A[2][n][m][m], double x[2][n][m]) {
  for (int h = 0; h < 2; h++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < m; j++)
        for (int k = j; k < m; k++) x[h][i][j] += A[h][i][j][k];
}
"""
BLOCK = "codelet: grid blocksize 4x2"
TEAMS = tuple(f"loop {var}: parallel, team" for var in "ijk")
CASES = {
    "beside a sum": Case(UNIT, ("loop i: parallel", "loop j: parallel, team", BLOCK), sized((1,), (8,), (21,)),
                         ("reduction i, shared j 8",)),
    "alone": Case(OWN, ("loop i: parallel, team", BLOCK), sized((0,), (7,), (8,), (30,)),
                  ("shared i 8, in the thread j",)),
    "one after the other": Case(TURNED, (*TEAMS, BLOCK), sized((0,), (5,), (19,)),
                                ("shared i, j, k 8",)),
    "some of them": Case(TURNED, (TEAMS[0], TEAMS[2], BLOCK), sized((11,)),
                         ("shared i 8", "grid j 8", "shared k 8")),
    "blocks of two sizes": Case(TURNED, (*TEAMS, "loop k: grid blocksize 3x1"), sized((11,)),
                                ("shared i, j 256", "shared k 3")),
    "unrolled": Case(TURNED, (*TEAMS, "loop i: unroll 3", "loop j: unroll 2, split, guarded",
                              "loop k: tile k:2", BLOCK), sized((4,), (23,)),
                     ("shared i, i, j, outer_k 8, in the thread k",)),
    "of each row": Case(ROWS, ("loop j: parallel, team", BLOCK), sized((5,), (11,)), ("grid i, shared j 4x2",)),
    "of rows of a batch": Case(BATCH, ("loop 3: parallel", "loop 4: parallel, team", BLOCK), sized((2, 3), (3, 11)),
                               ("grid i, j, reduction k, shared k 8x1",)),
    "of three loops": Case(DEEP, ("loop k: parallel", BLOCK), sized((2, 3), (3, 11)),
                           ("grid h, i, j, reduction k 8x1",)),
    "in a loop of the host": Case(COLUMNS, ("loop 2: parallel, team", BLOCK), sized((5, 4)),
                                  ("host k", "  shared i 8", "  grid j, i 4x2")),
    "as many as the data say": Case(COUNTED, ("loop i: parallel, team", BLOCK), sized((9,)), ("shared i 8",)),
}  # fmt: skip


def made(case: Case) -> Plan:
    return lower(scheduled(case.text, *case.lines).codelet, blocks=True)
