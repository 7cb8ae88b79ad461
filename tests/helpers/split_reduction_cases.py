"""Codelets whose loops reduce, with directives that deal a sum out to blocks, in parts."""

from __future__ import annotations

from tests.helpers.team_reduction_cases import (
    COLUMNS,
    KINDS,
    LONE_BLOCKS,
    MATRIX,
    NORM,
    ROWS,
    TRIANGLE,
    TWO,
    Case,
    sized,
)

SCALED = """
void f(int n, int m, int l, double C[n][m], double A[n][l], double B[l][m], double D[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] *= 3;
      for (int k = 0; k < l; k++) C[i][j] += A[i][k] * B[k][j];
      C[i][j] = C[i][j] - D[i];
    }
}
"""
PRODUCTS = """
void f(int n, int m, double A[n][m], double S[m][m]) {
  for (int p = 0; p < m; p++)
    for (int q = p; q < m; q++) {
      S[p][q] = 0;
      for (int i = 0; i < n; i++) S[p][q] += A[i][p] * A[i][q];
    }
}
"""
STEPS = """
void f(int n, int m, double A[n][m], double R[m][m]) {
  for (int k = 0; k < m; k++) {
    for (int j = k + 1; j < m; j++)
      for (int i = 0; i < n; i++) R[k][j] += A[i][k] * A[i][j];
    for (int i = 0; i < n; i++) A[i][k] = R[k][k] - A[i][k];
  }
}
"""
BOTH = """
void f(int n, int m, double A[n][m], double p[m], double q[n], double r[n], double s[m]) {
  for (int i = 0; i < n; i++) {
    q[i] = 1;
    for (int j = 0; j < m; j++) q[i] += A[i][j] * p[j];
    for (int j = 1; j < m; j++) s[j] += A[i][j] * r[i];
  }
}
"""
TOGETHER = """
void f(int n, int m, double A[n][m], double p[m], double q[n], double r[n], double s[m]) {
  for (int i = 0; i < n; i++) {
    q[i] = 1;
    for (int j = 0; j < m; j++) { s[j] += A[i][j] * r[i]; q[i] += A[i][j] * p[j]; }
  }
}
"""
BEGUN = """
void f(int n, int m, double A[n][m], double p[m], double q[n], double r[n], double s[m]) {
  for (int j = 0; j < m; j++) { s[j] = p[j]; s[j] *= 2; }
  for (int i = 0; i < n; i++) {
    q[i] = 1;
    for (int j = 0; j < m; j++) { s[j] += A[i][j] * r[i]; q[i] += A[i][j] * p[j]; }
  }
}
"""
TWICE = """
void f(int n, int m, double A[n][m], double x[m], double t[n], double y[m], double z[m]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) t[i] += A[i][j] * x[j];
    for (int j = 0; j < m; j++) { y[j] += A[i][j] * t[i]; z[j] = fmax(z[j], A[i][j]); }
  }
}
"""
BORDER = """
void f(int n, int m, double A[n][m], double x[n]) {
  for (int i = 0; i < n; i++) if (i > 0 && i < m) { x[i] *= 2; for (int j = 0; j < m; j++) x[i] += A[i][j]; }
}
"""
BATCH = """
void f(int n, int m, int l, double C[n][m][m], double A[n][m][l], double B[l][m]) {
  for (int b = 0; b < n; b++)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++)
        for (int k = 0; k < l; k++) C[b][i][j] += A[b][i][k] * B[k][j];
}
"""
DIGITS = """
void f(int n, double A[n], double B[n]) {
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < n; i++) B[(i + k) / 10] += A[i];
}
"""
COUNTS = """
void f(int n, int x[n], float w[n], unsigned char c[8], float h[3][2], int t[2]) {
  for (int j = 0; j < 8; j++) c[j] = 250;
  for (int i = 0; i < n; i++) {
    c[i % 8]++;
    if (w[i] > 0) h[i % 3][i % 2] += w[i];
    t[1] += x[i];
  }
}
"""
SMALL = "codelet: grid blocksize 4x2"
DEALT = {
    "parts of rows": Case(
        ROWS,
        ("loop j: rfactor 3", SMALL),
        sized((3, 2), (5, 9), (1, 0), (0, 3)),
        ("grid i, parts j_part 8, in the thread j", "grid i 8, in the thread j_part"),
    ),
    "parts of rows, by teams": Case(
        ROWS,
        ("nest i: rfactor j:3", "loop j: parallel", SMALL),
        sized((3, 2), (5, 25)),
        ("grid i, reduction j, parts j_part 4x2", "grid i 8, in the thread j_part"),
    ),
    "parts of columns": Case(
        COLUMNS,
        ("nest i: permute j, i", "loop i: rfactor 4", SMALL),
        sized((2, 3), (9, 7)),
        ("grid j, parts i_part 8, in the thread i", "grid j 8, in the thread i_part"),
    ),
    "many parts of columns": Case(
        COLUMNS,
        ("nest i: permute j, i", "loop i: rfactor 16", SMALL),
        sized((2, 3), (40, 7)),
        ("grid j, parts i_part 8, in the thread i", "grid j, reduction i_part 4x2"),
    ),
    "many parts of rows": Case(
        ROWS,
        ("loop j: rfactor 17", SMALL),
        sized((3, 2), (5, 39)),
        ("grid i, parts j_part 8, in the thread j", "grid i, reduction j_part 4x2"),
    ),
    "rows and columns at once": Case(
        BOTH,
        ("loop 2: parallel", "loop 1: rfactor 3", SMALL),
        sized((4, 5), (7, 9), (1, 1), (0, 3)),
        ("reduction j, shared j, j, parts i_part 8, in the thread i", "grid j 8, in the thread i_part"),
    ),
    "rows and columns in one loop": Case(
        TOGETHER,
        ("loop 2: parallel", "loop 1: rfactor 3", SMALL),
        sized((4, 5), (7, 19), (1, 1), (0, 3)),
        ("reduction j, shared j, parts i_part 8, in the thread i", "grid j 8, in the thread i_part"),
    ),
    "rows and columns in one loop, several at once": Case(
        TOGETHER,
        ("loop 2: parallel", "loop 1: unroll 2, jam", "loop 1: rfactor 16", SMALL),
        sized((8, 5), (71, 17)),
        (
            "reduction j, shared j, parts i_part 8, in the thread i",
            "grid j, reduction i_part 4x2",
            "reduction j, shared j, parts i_part1 8, in the thread i",
            "grid j, reduction i_part1 4x2",
        ),
    ),
    "rows and columns in one loop, begun in one": Case(
        BEGUN,
        ("loop 3: parallel", "loop 2: rfactor 3", SMALL),
        sized((4, 5), (7, 19), (1, 1), (0, 3)),
        ("reduction j, shared j, parts i_part 8, in the thread i", "grid j 8, in the thread i_part"),
    ),
    "begun with what the rows change": Case(
        BEGUN.replace("s[j] = p[j]; s[j] *= 2;", "s[j] = 1; p[j] = j;"),
        ("loop 3: parallel", "loop 2: rfactor 3", SMALL),
        sized((4, 5), (7, 19)),
        ("grid j 8", "reduction j, shared j, parts i_part 8, in the thread i", "grid j 8, in the thread i_part"),
    ),
    "begun with another element": Case(
        BEGUN.replace("s[j] = p[j]; s[j] *= 2;", "s[m - 1 - j] = p[j];"),
        ("loop 3: parallel", "loop 2: rfactor 3", SMALL),
        sized((4, 5), (7, 19)),
        ("grid j 8", "reduction j, shared j, parts i_part 8, in the thread i", "grid j 8, in the thread i_part"),
    ),
    "begun in part": Case(
        BEGUN.replace("int j = 0; j < m; j++) { s[j] = p[j]; s[j] *= 2;", "int j = 1; j < m; j++) { s[j] = p[j];"),
        ("loop 3: parallel", "loop 2: rfactor 3", SMALL),
        sized((4, 5), (7, 19)),
        ("grid j 8", "reduction j, shared j, parts i_part 8, in the thread i", "grid j 8, in the thread i_part"),
    ),
    "rows, and columns of them": Case(
        TWICE,
        ("loop 2: parallel", "loop 1: rfactor 2", SMALL),
        sized((4, 5), (7, 9), (1, 0)),
        ("reduction j, shared j, j, parts i_part 8, in the thread i", "grid j 8, in the thread i_part, i_part"),
    ),
    "rows, and columns of them, several at once": Case(
        TWICE,
        ("loop 2: parallel", "loop 1: unroll 2, jam", "loop 1: rfactor 16", SMALL),
        sized((8, 5), (70, 9)),
        (
            "reduction j, shared j, j, parts i_part 8, in the thread i",
            "grid j, reduction i_part, i_part 4x2",
            "reduction j, shared j, j, parts i_part1 8, in the thread i",
            "grid j, reduction i_part1, i_part1 4x2",
        ),
    ),
    "columns of which a thread has neighbours": Case(
        BOTH,
        ("loop 2: parallel", "loop 3: unroll 2", "loop 1: rfactor 3", SMALL),
        sized((4, 5), (7, 10), (1, 1), (0, 3)),
        (
            "reduction j, shared j, j, j, j, parts i_part 8, in the thread i",
            "grid j 8, in the thread i_part",
            "grid j 8, in the thread i_part",
        ),
    ),
    "rows, and columns of them, neighbours of both": Case(
        TWICE,
        (
            "loop 2: parallel",
            "loop 1: unroll 2, jam",
            "loop 2: vectorize 4",
            "loop 3: vectorize 4",
            "loop 1: rfactor 16",
            SMALL,
        ),
        sized((8, 5), (70, 16), (71, 18)),
        (
            "reduction j, j, shared j, j, j, j, parts i_part 8, in the thread i",
            "grid j, reduction i_part, i_part 4x2",
            "grid j, reduction i_part, i_part 4x2",
            "reduction j, j, shared j, j, j, j, parts i_part1 8, in the thread i",
            "grid j, reduction i_part1, i_part1 4x2",
            "grid j, reduction i_part1, i_part1 4x2",
        ),
    ),
    "parts of a norm": Case(
        NORM,
        ("loop i: rfactor 4", "loop i: parallel", *LONE_BLOCKS),
        sized((1,), (37,), (0,)),
        ("one thread", "reduction i, parts i_part 16", "one thread, in the thread i_part"),
    ),
    "parts of every kind": Case(
        KINDS,
        ("loop i: rfactor 3", "loop i: parallel", SMALL),
        sized((2,), (12,)),
        ("reduction i, parts i_part 8", "one thread, in the thread " + ", ".join(12 * ["i_part"])),
    ),
    "parts, unrolled": Case(
        MATRIX,
        ("loop k: rfactor k:2", "loop k: unroll 2", "loop i: unroll 2, jam", SMALL),
        sized((3, 4, 5), (4, 2, 12)),
        (
            "grid i, j, parts k_part 4x2, in the thread k, k",
            "grid i, j 4x2, in the thread k_part, k_part",
            "grid i, j, parts k_part1 4x2, in the thread k, k",
            "grid i, j 4x2, in the thread k_part1",
        ),
    ),
    "parts, tiled": Case(
        MATRIX,
        ("loop k: rfactor k:2", "loop k: tile 3", "loop j: tile 2", SMALL),
        sized((3, 5, 11)),
        (
            "grid i, outer_j, parts outer_k_part 4x2, in the thread j, outer_k, k",
            "grid i, outer_j 4x2, in the thread j, outer_k_part",
        ),
    ),
    "parts between statements": Case(
        SCALED,
        ("loop k: rfactor k:3", SMALL),
        sized((3, 4, 5), (2, 2, 0)),
        ("grid i, j, parts k_part 4x2, in the thread k", "grid i, j 4x2, in the thread k_part"),
    ),
    "parts of copies, some of which do not run": Case(
        SCALED,
        ("loop j: box 2", "loop j: unroll 2, jam", "loop k: rfactor 3", SMALL),
        sized((4, 5, 5), (2, 4, 3)),
        ("grid i, j, parts k_part 4x2, in the thread k", "grid i, j 4x2, in the thread k_part, k_part"),
    ),
    "parts of copies, one column left over": Case(
        SCALED,
        ("loop j: unroll 2, split, jam", "loop k: rfactor 3", SMALL),
        sized((3, 5, 5), (2, 4, 3)),
        (
            "grid i, j, parts k_part 4x2, in the thread k",
            "grid i, j 4x2, in the thread k_part, k_part",
            "grid i, j, parts k_part1 4x2, in the thread k",
            "grid i, j 4x2, in the thread k_part1",
        ),
    ),
    "parts, a launch a row": Case(
        SCALED,
        ("loop i: noParallel", "loop k: rfactor k:3", SMALL),
        sized((3, 4, 5)),
        ("host i", "  grid j, parts k_part 8, in the thread k", "  grid j 8, in the thread k_part"),
    ),
    "parts of two": Case(
        TWO,
        ("loop j: rfactor 2", SMALL),
        sized((3, 5)),
        ("grid i, parts j_part 8, in the thread j", "grid i 8, in the thread j_part, j_part"),
    ),
    "parts of products": Case(
        PRODUCTS,
        ("loop i: rfactor 3", SMALL),
        sized((8, 5)),
        ("grid p, parts i_part 8, in the thread q, i", "grid p 8, in the thread q, i_part"),
    ),
    "parts of products, a square with a condition": Case(
        PRODUCTS,
        ("loop p: unroll 2, jam", "loop q: box 2", "loop q: unroll 2, jam", "loop i: rfactor 3", SMALL),
        sized((8, 5), (3, 6)),
        (
            "grid p, q, parts i_part 4x2, in the thread i",
            "grid p, q 4x2, in the thread i_part, i_part, i_part, i_part",
            "grid p, q, parts i_part1 4x2, in the thread i",
            "grid p, q 4x2, in the thread i_part1, i_part1",
        ),
    ),
    "parts under a condition": Case(
        BORDER,
        ("loop j: rfactor 2", "loop j: tile 4", SMALL),
        sized((9, 7), (3, 13)),
        ("grid i, parts outer_j_part 8, in the thread outer_j, j", "grid i 8, in the thread outer_j_part"),
    ),
    "parts of a triangle": Case(
        TRIANGLE,
        ("loop j: rfactor 2", SMALL),
        sized((9,)),
        ("grid i, parts j_part 8, in the thread j", "grid i 8, in the thread j_part"),
    ),
    "parts of a grid with a z axis": Case(
        BATCH,
        ("loop b: gridify(b, i, j)", "loop k: rfactor 2", SMALL),
        sized((3, 4, 5), (2, 1, 1)),
        ("host k_part", "  grid b, i, j 4x2, in the thread k", "grid b, i, j 4x2, in the thread k_part"),
    ),
    "parts of a grid with a z axis, staged, copies with a remainder": Case(
        BATCH,
        (
            "loop b: gridify(b, i, j)",
            "loop i: unroll 2, jam",
            "loop j: unroll 2, jam",
            "loop k: tile 4",
            "loop k: stage A, B, buffers 2",
            "loop k: rfactor 2",
            SMALL,
        ),
        sized((2, 5, 9)),
        (
            "host outer_k_part",
            "  grid b, i, j 4x2, in the thread outer_k, k",
            "grid b, i, j 4x2, in the thread " + ", ".join(4 * ["outer_k_part"]),
            "host outer_k_part1",
            "  grid b, i, j 4x2, in the thread outer_k, k",
            "grid b, i, j 4x2, in the thread outer_k_part1, outer_k_part1",
            "host outer_k_part2",
            "  grid b, i, j 4x2, in the thread outer_k, k",
            "grid b, i, j 4x2, in the thread outer_k_part2, outer_k_part2",
            "host outer_k_part3",
            "  grid b, i, j 4x2, in the thread outer_k, k",
            "grid b, i, j 4x2, in the thread outer_k_part3",
        ),
    ),
    "copies of arrays, and a sum": Case(
        COUNTS,
        ("loop i: rfactor 3", SMALL),
        sized((37,), (2,), (0,)),
        (
            "grid j 8",
            "grid i_part 8, in the thread c_element, h_element, h_element1, i",
            "one thread, in the thread i_part",
            "grid c_element 8, in the thread i_part",
            "grid h_element 8, in the thread i_part",
        ),
    ),
    "copies of an array, added up by teams": Case(
        DIGITS,
        ("loop i: rfactor 16", "loop i: unroll 2", SMALL),
        sized((37,), (2,), (0,)),
        (
            "host k",
            "  grid i_part 8, in the thread B_element, i",
            "  grid B_element 8, in the thread i_part",
            "  grid i_part1 8, in the thread B_element1, i",
            "  grid B_element1 8, in the thread i_part1",
        ),
    ),
    "parts, step by step": Case(
        STEPS,
        ("loop 3: rfactor 2", SMALL),
        sized((7, 4)),
        ("host k", "  grid j, parts i_part 8, in the thread i", "  grid j 8, in the thread i_part", "  grid i 8"),
    ),
}
