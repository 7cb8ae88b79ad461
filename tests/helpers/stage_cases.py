"""Codelets with directives that stage tiles of arrays in shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines


@dataclass(frozen=True)
class Case:
    """A codelet, directives, and sizes to run it with; ``tiles`` are the shapes, of one version after the other."""

    text: str
    lines: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]
    tiles: tuple[tuple[int, ...], ...]


def sized(*counts: tuple[int, ...]) -> tuple[Mapping[str, int], ...]:
    return tuple(dict(zip(("n", "m", "l"), c, strict=False)) for c in counts)


PRODUCT = """
void f(int n, int m, int l, double C[n][m], double A[n][l], double B[l][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] *= 3;
      for (int k = 0; k < l; k++) C[i][j] += A[i][k] * B[k][j];
    }
}
"""
ITSELF = """
void f(int n, int m, float C[n][n], float A[n][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < m; k++) C[i][j] += A[i][k] * A[j][k];
}
"""
STENCIL = """
void f(int n, int m, float A[n][m], float B[n][m]) {
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m - 1; j++)
      B[i][j] = A[i][j] + 2 * (A[i - 1][j] + A[i + 1][j]) + 3 * (A[i][j - 1] + A[i][j + 1]) + A[i - 1][j - 1];
}
"""
STEPS = """
void f(int n, int m, float A[n][m], float B[n][m]) {
  for (int t = 0; t < 2; t++) {
    for (int i = 1; i < n; i++) for (int j = 0; j < m - 1; j++) B[i][j] = A[i - 1][j] + A[i][j + 1];
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = B[i][j] / 2;
  }
}
"""
LAYERS = """
void f(int n, int m, int l, double A[n][m][l], double B[n][m][l]) {
  for (int j = 1; j < m - 1; j++)
    for (int k = 0; k < l; k++)
      for (int i = 1; i < n - 1; i++) B[i][j][k] = A[i - 1][j][k] - A[i + 1][j + 1][k] + A[i][j - 1][k];
}
"""
CUBE = """
void f(int n, int m, int l, double A[n][m][l], double B[n][m][l]) {
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m - 1; j++)
      for (int k = 0; k < l; k++) B[i][j][k] = A[i - 1][j][k] - A[i + 1][j + 1][k] + A[i][j - 1][k];
}
"""
ACROSS = """
void f(int n, int m, int A[m][2 * n + 1], int x[m], int y[n], int s[n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) y[i] += A[j][2 * i + 1] * x[m - 1 - j];
    s[n - 1 - i] = x[0];
  }
}
"""
TRIANGLE = """
void f(int n, int m, double A[n][m], double S[m][m]) {
  for (int p = 0; p < m; p++)
    for (int q = p; q < m; q++) {
      S[p][q] = 0;
      for (int i = 0; i < n; i++) S[p][q] += A[i][p] * A[i][q];
      S[q][p] = S[p][q];
    }
}
"""
LINE = """
void f(int n, double x[n], double y[n])
{ for (int i = 2; i < n - 2; i++) y[i] = x[i - 2] + x[i + 2]; }
"""
BACKWARDS = """
void f(int n, double x[n], double y[n]) { for (int i = 0; i < n; i++) y[i] = x[n - 1 - i] * x[i]; }
"""
SMALL = "codelet: grid blocksize 4x2"
CASES = {
    "product": Case(PRODUCT, ("loop k: tile 4", "loop k: stage A, B", SMALL),
                    sized((4, 8, 8), (5, 7, 9), (1, 1, 1), (2, 4, 3)), ((2, 4), (4, 4))),
    "16 bytes at a time, to an edge": Case(PRODUCT, ("loop k: tile 4", "loop k: stage A, B", SMALL),
                                           sized((5, 14, 10), (3, 2, 6)), ((2, 4), (4, 4))),
    "the next one ahead": Case(
        PRODUCT, ("loop k: tile 4", "loop k: stage A, B, buffers 2", "loop i: unroll 2, jam", SMALL),
        sized((4, 8, 16), (5, 7, 9), (3, 2, 6), (1, 1, 1)), ((4, 4), (4, 4))),
    "turned": Case(
        PRODUCT, ("loop k: tile 4", "loop k: stage A, B, transposed(A), unroll 4", "loop i: unroll 4, jam", SMALL),
        sized((8, 8, 8), (13, 7, 9)), ((8, 10), (4, 4))),
    "turned, the next one ahead, several at once": Case(
        PRODUCT, ("loop k: tile 6", "loop k: stage A, B, buffers 2, transposed(A), unroll 4", "loop i: unroll 2, jam",
                  "loop j: unroll 2, split, jam", SMALL), sized((8, 8, 12), (5, 15, 11), (4, 8, 6), (3, 2, 5)), ()),
    "transposed, in layers": Case(CUBE, ("nest i: gridify(i, j, k)", "loop i: tile 3",
                                         "loop i: stage A, transposed(A)", SMALL),
                              sized((7, 5, 6), (3, 3, 1)), ()),
    "several at once": Case(PRODUCT, ("loop k: tile 6", "loop k: stage A, B, unroll 3", SMALL),
                            sized((4, 8, 12), (5, 7, 9), (3, 2, 4)), ((2, 6), (6, 4))),
    "three ahead": Case(PRODUCT, ("loop k: tile 2", "loop k: stage A, B, buffers 4", SMALL),
                        sized((4, 8, 16), (5, 7, 13), (3, 2, 4)), ((2, 2), (2, 4))),
    "ahead, row by row": Case(
        PRODUCT, ("loop i: noParallel", "loop k: tile 4", "loop k: stage B, buffers 3", SMALL), sized((3, 9, 18)), ()),
    "ahead, of a part": Case(PRODUCT, ("loop k: rfactor 2", "loop k: tile 4", "loop k: stage A, B, buffers 2", SMALL),
                             sized((3, 5, 16), (2, 4, 9)), ()),
    "ahead, small elements": Case(
        "void f(int n, int m, short A[n][m], short x[m], short y[n])\n"
        "{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += A[i][j] * x[j]; }\n",
        ("loop j: tile 4", "loop j: stage x, buffers 2", SMALL), sized((9, 18)), ()),
    "one of two": Case(PRODUCT, ("loop k: tile 3", "loop k: stage B", SMALL), sized((5, 7, 9)), ((3, 4),)),
    "several elements a thread": Case(
        PRODUCT, ("loop k: tile 4", "loop k: stage A, B", "loop i: unroll 2, jam", "loop j: unroll 3, jam", SMALL),
        sized((8, 12, 8), (5, 7, 9)), ((4, 4), (4, 12))),
    "split copies": Case(
        PRODUCT, ("loop k: tile 4", "loop k: stage A, B", "loop j: unroll 2, split, jam", SMALL),
        sized((4, 16, 8), (5, 21, 9)), ()),
    "itself": Case(ITSELF, ("loop k: tile 4", "loop k: stage A", SMALL), sized((8, 8), (5, 6), (6, 12)),
                   ((2, 4), (4, 4))),
    "stencil": Case(STENCIL, ("nest i: stage A", SMALL), sized((6, 10), (9, 7), (3, 3), (2, 2)), ((4, 6),)),
    "stencil, several": Case(STENCIL, ("nest i: stage A", "loop i: unroll 3, jam", SMALL), sized((11, 10), (9, 7)), ()),
    "stencil, far copies": Case(STENCIL, ("nest i: stage A", "loop i: unroll 2, split, jam", SMALL),
                                sized((22, 10), (19, 7)), ()),
    "steps": Case(STEPS, ("loop 2: stage A", "loop 4: stage B", SMALL), sized((5, 9)), ((3, 5), (2, 4))),
    "layers": Case(LAYERS, ("loop i: tile 3", "loop i: stage A", SMALL), sized((7, 5, 6)), ()),
    "a grid of three": Case(CUBE, ("nest i: gridify(i, j, k)", "loop i: tile 3", "loop i: stage A", SMALL),
                            sized((7, 5, 6), (9, 4, 9), (3, 3, 1)), ()),
    "a grid of three, several": Case(CUBE, ("nest i: gridify(i, j, k)", "loop i: unroll 2, jam", "loop j: stage A",
                                            "loop k: box 4", SMALL), sized((7, 5, 8), (8, 6, 9)), ()),
    "across": Case(ACROSS, ("loop j: tile 4", "loop j: stage A, x", SMALL), sized((9, 8), (5, 7)), ()),
    "triangle": Case(TRIANGLE, ("nest p: gridify(p, q)", "loop i: tile 4", "loop i: stage A", SMALL),
                     sized((8, 8), (5, 7)), ((4, 2), (4, 4))),
    "triangle in a box": Case(
        TRIANGLE, ("loop q: box", "loop p: unroll 2, jam", "loop q: unroll 2, jam", "loop i: tile 4", "loop i: stage A",
                   SMALL), sized((8, 8), (5, 7), (6, 12)), ((4, 4), (4, 8))),
    "triangle in a box, ahead": Case(
        TRIANGLE, ("loop p: box 2", "loop q: box 2", "loop p: unroll 2, jam", "loop q: unroll 2, jam", "loop i: tile 4",
                   "loop i: stage A, buffers 2", SMALL), sized((12, 8), (9, 7)), ((4, 4), (4, 8))),
    "triangle in a larger box": Case(
        TRIANGLE, ("loop p: box 4", "loop q: box 2", "loop p: unroll 4, jam", "loop q: unroll 2, jam", "loop i: tile 4",
                   "loop i: stage A", SMALL), sized((8, 8), (5, 7), (3, 10)), ((4, 8), (4, 8))),
    "line": Case(LINE, ("loop i: stage x", SMALL), sized((20,), (13,), (3,)), ((12,),)),
    "backwards": Case(BACKWARDS, ("loop i: stage x", SMALL), sized((20,), (13,)), ((8,), (8,))),
    "a launch a row": Case(PRODUCT, ("loop i: noParallel", "loop k: tile 4", "loop k: stage A, B", SMALL),
                           sized((2, 7, 9)), ()),
    "parts": Case(PRODUCT, ("loop k: rfactor 2", "loop k: tile 4", "loop k: stage A, B", SMALL),
                  sized((3, 5, 16), (2, 4, 9)), ()),
}  # fmt: skip


def planned(case: Case, sizes: Mapping[str, int] | None = None) -> Plan:
    done = schedule(Analysis(load(case.text).codelet), parse_lines(case.lines)).codelet
    return lower(done if sizes is None else specialize(done, sizes))
