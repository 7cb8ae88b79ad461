"""Calls of the C library that write memory give gcc's results, and functions that write scalars of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.against_gcc import difference

MEMORY = """\
#include <string.h>
#include <math.h>
static void clear(double p[4][5], int row) { memset(p[row], 0, 5 * sizeof(**p)); }
void f(int n, int m, float a[n], float b[n], double A[n][m], double *x, double *y, int *e, unsigned char *c,
       int B[4][5], double D[4][5]) {
  int C[4][5], q;
  double w, s, t;
  for (int i = 0; i < n; i++) {
    memset(a, 0, n * sizeof(float));
    for (int j = 0; j < n; j++) a[j] += i;
    memcpy(b, a, sizeof(float) * (size_t) n);
    memcpy(&A[i][1], y + 1, (m - 2) * sizeof(*y));
    memset(C, 0, sizeof(C));
    C[1][2] = i;
    memmove(B[0], C[1], sizeof(C[0][0]) * 1);
    memcpy(B[2], C[1], 5 * sizeof(int));
    memset(c + i, 7, 2);
    memset(B[1], -1, sizeof(int) * 5);
    clear(D, i % 4);
    x[i] = frexp(x[i] * i, &e[i]);
    y[i] += modf(y[i] * 9, &w);
    y[i] += w - frexp(-x[i] / 0, &q);
    y[i] += q + frexpf(a[i], &q) * q;
    sincos(i, &s, &t);
    x[i] += s * t;
  }
}
"""
GLOBALS = """\
static int biggest, seed = 3;
static double total;
static int next(void) { seed = (seed * 1309 + 13849) & 65535; return seed; }
static int now(void) { return seed; }
static void add(double v) { total += v; }
void f(int n, int *a) {
  seed = 7;
  for (int i = 0; i < n; i++) {
    a[i] = next() % 50 - 20;
    if (a[i] > biggest) biggest = a[i];
    add(a[i]);
    a[i] += now();
  }
}
"""


@pytest.mark.parametrize("n", [1, 6])
def test_memory_and_parts_of_numbers_are_those_of_the_library(n: int, tmp_path: Path) -> None:
    shapes = {"x": (n,), "y": (8,), "e": (n,), "c": (n + 2,)}
    assert difference(MEMORY, {"n": n, "m": 7}, tmp_path, shapes) is None


def test_a_function_that_is_called_may_write_scalars_of_the_file(tmp_path: Path) -> None:
    assert difference(GLOBALS, {"n": 20}, tmp_path, kernel="f") is None


def test_named_elements_of_an_array_stand_at_their_places(tmp_path: Path) -> None:
    text = """\
float scale(float *, int);
void f(int n, int m, int *out, float *a) {
  static const unsigned char map[96] = {['A'] = 'a', 'b', 'c', [0x50] = 3};
  const int t[] = {1, [4] = 7, 9};
  for (int i = 0; i < n; i++) {
    float scale(float *, int);
    out[i] = map[i % 96] + t[i % 6];
    a[i * m + 2] = scale(a, i) + out[i];
  }
}
float scale(float *p, int k) { return 2 * p[k]; }
"""
    assert difference(text, {"n": 100, "m": 3}, tmp_path, {"a": (400,), "out": (100,)}, kernel="f") is None
