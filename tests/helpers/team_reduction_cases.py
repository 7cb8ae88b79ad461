"""Codelets whose loops reduce, with directives that give a sum to a team of threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A codelet, directives, sizes to run it with; ``runs`` is how a GPU would, without the numbers."""

    text: str
    lines: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]
    runs: tuple[str, ...]


def sized(*counts: tuple[int, ...]) -> tuple[Mapping[str, int], ...]:
    return tuple(dict(zip(("n", "m", "l"), c, strict=False)) for c in counts)


ROWS = """
void f(int n, int m, float A[n][m], float x[m], float y[n])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += A[i][j] * x[j]; }
"""
COLUMNS = """
void f(int n, int m, double A[n][m], double r[n], double s[m])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) s[j] -= r[i] * A[i][j]; }
"""
NORM = """
void f(int n, float x[n], float out[2]) {
  float s = out[0];
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  out[0] = s; out[1] = sqrt(s);
}
"""
KINDS = """
void f(int n, double x[n], float z[n], int d[n], unsigned char b[n],
       double o[4], float p[3], int q[4], unsigned char c[1]) {
  for (int i = 1; i < n; i += 2) {
    o[0] *= 1 + x[i] / 8;
    o[1] = x[i] < o[1] ? x[i] : o[1];
    o[2] = fmax(o[2], x[i]);
    if (x[i] > o[3]) o[3] = x[i];
    p[0] = z[i] + p[0];
    p[1] = fminf(p[1], z[i]);
    p[2] = p[2] < z[i] ? z[i] : p[2];
    q[0] += d[i];
    q[1] = d[i] < q[1] ? d[i] : q[1];
    if (q[2] < d[i]) q[2] = d[i];
    q[3] *= d[i];
    c[0] += b[i];
  }
}
"""
ALL = """
void f(int n, int m, double A[n][m], double out[1])
{ for (int i = 0; i < n; i++) for (int j = i; j < m; j++) out[0] += A[i][j]; }
"""
MATRIX = """
void f(int n, int m, int l, double C[n][m], double A[n][l], double B[l][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = 0; k < l; k++) C[i][j] += A[i][k] * B[k][j];
}
"""
TRIANGLE = """
void f(int n, double L[n][n], double x[n], double y[n])
{ for (int i = 1; i < n; i++) for (int j = 0; j < i; j++) y[i] += L[i][j] * x[j]; }
"""
TWO = """
void f(int n, int m, float A[n][m], float y[n], float lo[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      float t = A[i][j] * 2;
      y[i] += t;
      if (t < lo[i]) lo[i] = t;
    }
}
"""
LONE_BLOCKS = ("codelet: grid blocksize 8x2",)
PERFECT = {
    "rows": Case(ROWS, ("loop j: parallel, reduce(+:y)", "codelet: grid blocksize 4x2"),
                 sized((3, 2), (5, 4), (4, 9), (1, 0), (0, 3)), ("grid i, reduction j 4x2",)),
    "rows, sum on y": Case(ROWS, ("nest i: gridify(j, i), blocksize 4x8",), sized((5, 11)),
                           ("grid i, reduction j 4x8",)),
    "rows, six lanes": Case(ROWS, ("loop j: parallel", "codelet: grid blocksize 6x3"), sized((4, 5), (3, 20)),
                            ("grid i, reduction j 6x3",)),
    "rows, one lane": Case(ROWS, ("loop j: parallel", "codelet: grid blocksize 1x4"), sized((5, 3)),
                           ("grid i, reduction j 1x4",)),
    "columns": Case(COLUMNS, ("loop i: parallel, reduce(+:s)", "loop j: parallel", "codelet: grid blocksize 4x3"),
                    sized((2, 3), (7, 6), (0, 5), (9, 4)), ("grid j, reduction i 4x3",)),
    "columns, sum on x": Case(COLUMNS, ("nest i: gridify(j, i), blocksize 4x2",), sized((7, 3)),
                              ("grid j, reduction i 4x2",)),
    "columns, host": Case(COLUMNS, ("nest i: permute j, i", "loop i: parallel", "loop j: noParallel", *LONE_BLOCKS),
                          sized((5, 2)), ("host j", "  reduction i 16")),
    "norm": Case(NORM, ("loop i: parallel, reduce(+:s)", *LONE_BLOCKS), sized((1,), (16,), (37,)),
                 ("one thread", "reduction i 16", "one thread")),
    "kinds": Case(KINDS, ("loop i: parallel, reduce(*:o, min:o, max:o, +:p, min:p, max:p, +:q, min:q, max:q, *:q, +:c)",
                          "codelet: grid blocksize 5x1"), sized((1,), (12,), (31,)), ("reduction i 5",)),
    "all": Case(ALL, ("loop i: parallel", "loop j: parallel", "codelet: grid blocksize 4x2"), sized((3, 2), (5, 7)),
                ("reduction i, j 4x2",)),
    "all, rows in a thread": Case(ALL, ("loop i: parallel", *LONE_BLOCKS), sized((3, 5)),
                                  ("reduction i 16, in the thread j",)),
    "matrix": Case(MATRIX, ("nest i: gridify(i, k), blocksize 4x2",), sized((3, 2, 5)),
                   ("grid i, reduction k 4x2, in the thread j",)),
    "matrix, k outside": Case(MATRIX, ("nest i: permute i, k, j", "nest i: gridify(k, j), blocksize 4x2"),
                              sized((2, 5, 7)), ("host i", "  grid j, reduction k 4x2")),
    "triangle": Case(TRIANGLE, ("loop j: parallel", "codelet: grid blocksize 4x2"), sized((7,)),
                     ("grid i, reduction j 4x2",)),
    "two": Case(TWO, ("loop j: parallel, reduce(+:y, min:lo), private(t)", "codelet: grid blocksize 4x2"),
                sized((3, 6)), ("grid i, reduction j 4x2",)),
    "unrolled": Case(ROWS, ("loop j: parallel", "loop j: unroll 3, split", "codelet: grid blocksize 4x2"),
                     sized((3, 14)), ("grid i, reduction j, j 4x2",)),
    "guarded": Case(ROWS, ("loop j: parallel", "loop j: unroll 2, guarded", "codelet: grid blocksize 4x2"),
                    sized((3, 13)), ("grid i, reduction j 4x2",)),
    "tiled": Case(ROWS, ("loop j: parallel", "loop j: tile j:3", "codelet: grid blocksize 4x2"), sized((3, 14)),
                  ("grid i, reduction outer_j 4x2, in the thread j",)),
    "rows tiled": Case(ROWS, ("loop j: parallel", "loop i: tile i:3", "codelet: grid blocksize 4x2"), sized((7, 6)),
                       ("grid outer_i, reduction j 4x2, in the thread i",)),
    "jammed": Case(ROWS, ("loop j: parallel", "loop i: unroll 2, jam", "codelet: grid blocksize 4x2"), sized((7, 6)),
                   ("grid i, reduction j 4x2", "grid i, reduction j 4x2")),
    "jammed under a guard": Case(ROWS, ("loop j: parallel", "loop i: unroll 2, guarded, jam",
                                        "codelet: grid blocksize 4x2"), sized((7, 6)), ("grid i, reduction j 4x2",)),
    "default block": Case(ROWS, ("loop j: parallel",), sized((9, 70)), ("grid i, reduction j 32x8",)),
}  # fmt: skip

MEAN = """
void f(int n, int m, double mean[m], double data[n][m]) {
  for (int j = 0; j < m; j++) {
    mean[j] = 0;
    for (int i = 0; i < n; i++) mean[j] += data[i][j];
    mean[j] /= n;
    for (int k = 0; k < n; k++) data[k][j] -= mean[j];
  }
}
"""
STEP = """
void f(int n, int m, int k, double R[n][n], double Q[m][n], double A[m][n]) {
  for (int j = k + 1; j < n; j++) {
    R[k][j] = 0;
    for (int i = 0; i < m; i++) R[k][j] += Q[i][k] * A[i][j];
    for (int i = 0; i < m; i++) A[i][j] -= Q[i][k] * R[k][j];
  }
}
"""
SOFTMAX = """
void f(int n, int m, double A[n][m]) {
  for (int i = 0; i < n; i++) {
    double most = A[i][0], sum = 0, scale;
    for (int j = 1; j < m; j++) most = A[i][j] > most ? A[i][j] : most;
    for (int j = 0; j < m; j++) { A[i][j] = exp(A[i][j] - most); sum += A[i][j]; }
    scale = 1 / sum;
    for (int j = 0; j < m; j++) A[i][j] *= scale;
  }
}
"""
ROUNDS = """
void f(int n, int m, int l, double A[n][m], double y[n]) {
  for (int i = 0; i < n; i++) {
    double d = 1;
    for (int t = 0; t < l + i; t++) {
      double s = 0;
      for (int j = 0; j < m; j++) s += A[i][j] * d;
      d = s > 4 || s < -4 ? 1 : s;
      for (int j = 0; j < m; j++) A[i][j] = A[i][j] / 2 + d;
    }
    y[i] = d;
  }
}
"""
CHOSEN = """
void f(int n, int m, double A[n][m], double y[n]) {
  for (int i = 0; i < n; i++) {
    double t = y[i];
    if (A[i][0] > 0) {
      y[i] = 1;
      for (int j = 0; j < m; j++) t += A[i][j];
      A[i][0] = t;
    } else {
      for (int j = 0; j < m; j++) y[i] += A[i][j];
    }
    if (i % 2) for (int j = 0; j < m; j++) A[i][j] *= t;
  }
}
"""
RESET = """
void f(int n, int m, double A[n][m], double y[n]) {
  for (int i = 0; i < n; i++) {
    double t = y[i];
    if (A[i][0] > 0) {
      t = 0;
      for (int j = 0; j < m; j++) t += A[i][j];
    }
    y[i] = t;
  }
}
"""
PAIRS = """
void f(int n, int m, double data[n][m], double S[m][m]) {
  for (int p = 0; p < m - 1; p++) {
    S[p][p] = 1;
    for (int q = p + 1; q < m; q++) {
      S[p][q] = 0;
      for (int i = 0; i < n; i++) S[p][q] += data[i][p] * data[i][q];
      S[q][p] = S[p][q];
    }
  }
}
"""
BOTH = """
void f(int n, int m, double A[n][m], double p[m], double r[n], double q[n], double s[m]) {
  for (int i = 0; i < n; i++) {
    q[i] = 0;
    for (int j = 0; j < m; j++) { s[j] += r[i] * A[i][j]; q[i] += A[i][j] * p[j]; }
  }
}
"""
IMPERFECT = {
    "mean": Case(MEAN, ("loop i: parallel", "codelet: grid blocksize 4x2"), sized((9, 3), (2, 4), (0, 3)),
                 ("grid j, reduction i, shared k 4x2",)),
    "mean, columns on x": Case(MEAN, ("nest j: gridify(i, j), blocksize 2x5", "loop k: parallel"), sized((9, 3)),
                               ("grid j, reduction i, shared k 2x5",)),
    "step": Case(STEP, ("nest j: gridify(i, j), blocksize 4x3",), ({"n": 6, "m": 5, "k": 1}, {"n": 3, "m": 7, "k": 2}),
                 ("grid j, reduction i, shared i 4x3",)),
    "softmax": Case(SOFTMAX, ("loop 2: parallel, reduce(max:most)", "loop 3: parallel, reduce(+:sum)",
                              "codelet: grid blocksize 4x2"), sized((3, 6), (1, 1)),
                    ("grid i, reduction j, j, shared j 4x2",)),
    "rounds": Case(ROUNDS, ("loop 3: parallel, reduce(+:s)", "codelet: grid blocksize 3x2"),
                   sized((3, 4, 2), (4, 2, 0)), ("grid i, reduction j, shared j 3x2, in the thread t",)),
    "chosen": Case(CHOSEN, ("loop 2: parallel", "loop 3: parallel", "codelet: grid blocksize 4x2"), sized((5, 6)),
                   ("grid i, reduction j, j, shared j 4x2",)),
    "reset": Case(RESET, ("loop j: parallel", "codelet: grid blocksize 4x2"), sized((7, 6)),
                  ("grid i, reduction j 4x2",)),
    "pairs": Case(PAIRS, ("loop i: parallel", "codelet: grid blocksize 4x2"), sized((5, 4)),
                  ("grid p, reduction i 4x2, in the thread q",)),
    "pairs, a launch a row": Case(PAIRS, ("loop p: noParallel", "loop i: parallel", "codelet: grid blocksize 4x2"),
                                  sized((5, 4)), ("host p", "  one thread", "  grid q, reduction i 4x2")),
    "both": Case(BOTH, ("loop j: parallel, reduce(+:q)", "loop i: noParallel", *LONE_BLOCKS), sized((3, 5)),
                 ("host i", "  one thread", "  reduction j 16")),
}  # fmt: skip
