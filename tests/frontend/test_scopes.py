"""Types, enumeration constants and variables follow the block scope and the order of C."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.ir.nodes import Scalar
from tests.helpers import cross_check

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

TEXTS = {
    "a typedef of another function": """
typedef short T;
void g(int *p) { typedef long T; T x = 1; *p = x; }
void f(int n, int a[n]) { for (int i = 0; i < n; i++) { T x = 70000 + i; a[i] += x; } }
""",
    "a typedef of a block, of a loop, of a branch": """
typedef short T;
void f(int n, int a[n]) {
  { typedef long T; a[0] = (T)70000; }
  a[1] = (T)70001;
  for (int i = 2; i < n; i++) { typedef signed char T; a[i] = (T)(i + 300); }
  if (n > 2) { typedef unsigned char T; a[2] = (T)-1; } else a[2] = (T)70002;
  a[3] = (T)70003;
}
""",
    "constants of a block hide those outside": """
enum { A = 5, B };
void f(int n, int a[n]) {
  a[0] = A + B;
  { enum { A = 70, C }; a[1] = A + B + C; }
  a[2] = A;
  for (int i = 3; i < n; i++) { enum { B = 9 }; a[i] = A * B; }
}
""",
    "a constant and a typedef under a variable": """
enum { A = 5 };
typedef short T;
void f(int n, int a[n]) {
  { int A = 70000; a[0] = A; }
  { int T = 70000; a[1] = T; }
  for (int T = 2; T < n; T++) a[T] = A + T;
}
""",
    "a typedef of a typedef means what it meant": """
typedef short T;
typedef T U;
void f(int n, int a[n]) { typedef long T; typedef T V; for (int i = 0; i < n; i++) a[i] = (U)(70000 + i) + (int)(V)i; }
""",
    "variables named like types of headers": """
int uint = 3;
static int ulong = 4;
void f(int n, int a[n]) { int time_t = 5; for (int i = 0; i < n; i++) a[i] = 3 * time_t + i; }
""",
    "enumerated types are unsigned where no constant is negative": """
enum big { X, Y };
enum both { M = -1, P };
void f(int n, int a[n]) {
  for (int i = 0; i < n; i++) {
    enum big x = X;
    enum both y = P;
    a[i] = (x - 1 > 0) + 10 * (y - 1 > 0);
  }
}
""",
    "the sign of an enumerated type is that of its constants' values": """
enum { M = -3 };
enum less { A = 3 - 5, B };
enum named { C = M };
enum none { D = -(1 - 2), E };
void f(int n, int a[n]) {
  for (int i = 0; i < n; i++) {
    enum less x = i - 3;
    enum named y = i - 3;
    enum none z = i - 3;
    a[i] = (x < 0) + 10 * (y < 0) + 100 * (z < 0) + x / 2 + y / 2 + (z - 9) / 2 + (enum less)(i - 2) / 2;
  }
}
""",
    "constants that fit no int have the enumerated type": """
enum { BIG = 0x80000000u, LONG = 1L << 40, NEXT, SMALL = 2 };
void f(int n, int a[n]) {
  for (int i = 0; i < n; i++)
    a[i] = (BIG > 5) + 2 * (LONG >> 38) + 16 * (-1 < LONG) + 32 * (SMALL - 3 < 0) + NEXT % 7;
}
""",
    "what a called function names is the file's": """
enum { K = 3 };
static const int w[K] = {1, K, 5};
static int h(int i) { return w[i % 3] * 100 + K; }
void f(int n, int K, int w, int a[n]) { for (int i = 0; i < n; i++) a[i] += h(i) + w + K; }
""",
    "a variable of the function hides what a called function names": """
static const int w[3] = {1, 2, 5};
static int h(int i) { return w[i % 3]; }
void f(int n, int a[n]) {
  int w[2] = {7, n};
  for (int i = 0; i < n; i++) { a[i] += h(i) * 100 + w[i % 2]; }
}
""",
    "an unsigned number taken from a pointer does not wrap": """
void f(int n, unsigned m, int p[n], int a[n]) {
  for (long i = 6; i < n; i++) a[i] = *(p + i - 1u) + *(p - m + i) + *(p + i - m) + *(p + i - (unsigned char)2);
}
""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_names_mean_what_they_mean_in_c(name: str, tmp_path: Path) -> None:
    """The interpreted codelet leaves what the function leaves that gcc compiles."""
    codelet = load(TEXTS[name], kernel="f").codelet
    sizes = {"n": 9, "m": 2, "K": 1000, "w": 50}
    known = {p.name: sizes[p.name] for p in codelet.params if p.name in sizes and isinstance(p, Scalar)}
    given = cross_check.arguments(codelet, known)
    assert (
        cross_check.off(
            cross_check.by_gcc(TEXTS[name], codelet, given, tmp_path), cross_check.interpreted(codelet, given)
        )
        is None
    )


def test_long_enumerations_are_read() -> None:
    """A constant among thousands has its value, whatever stands before it."""
    names = ", ".join(f"E{k}" for k in range(3000))
    codelet = load(f"enum {{ {names} }};\nvoid f(int a[4]) {{ for (int i = 0; i < 4; i++) a[i] = E2999; }}").codelet
    assert np.array_equal(cross_check.interpreted(codelet, cross_check.arguments(codelet, {}))["a"], [2999] * 4)
