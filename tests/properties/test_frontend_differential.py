"""C programs through the front end and the interpreter, against the same text compiled by gcc."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.ir.interpreter import run
from looptune.ir.nodes import Array, Const, Expr, Scalar
from looptune.ir.rewrite import substitute

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

C_TYPES = {
    "float32": ctypes.c_float, "float64": ctypes.c_double, "int32": ctypes.c_int, "int64": ctypes.c_long,
    "uint32": ctypes.c_uint, "uint64": ctypes.c_ulong, "int8": ctypes.c_byte, "uint8": ctypes.c_ubyte,
    "int16": ctypes.c_short,
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """``sizes`` are the values of scalar parameters and of extents that are not declared (by array name)."""

    name: str
    text: str
    sizes: dict[str, float]


PROGRAMS = (
    Program("polybench-gemm", """
#include <stdio.h>
#include <math.h>
#define POLYBENCH_2D(var,d1,d2,a,b) var[d1][d2]
#define NI 5
#define NJ 6
#define NK 7
#define _PB_NI NI
#define _PB_NJ NJ
#define _PB_NK NK
#define DATA_TYPE double
#define SCALAR_VAL(x) x
#define SQRT_FUN(x) sqrt(x)
void kernel_gemm(int ni, int nj, int nk, DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE POLYBENCH_2D(C,NI,NJ,ni,nj),
                 DATA_TYPE POLYBENCH_2D(A,NI,NK,ni,nk), DATA_TYPE POLYBENCH_2D(B,NK,NJ,nk,nj))
{
  int i, j, k;
#pragma scop
  for (i = 0; i < _PB_NI; i++) {
    for (j = 0; j < _PB_NJ; j++)
      C[i][j] *= beta;
    for (k = 0; k < _PB_NK; k++)
      for (j = 0; j < _PB_NJ; j++) C[i][j] += alpha * A[i][k] * B[k][j] + SQRT_FUN(SCALAR_VAL(2.0));
  }
#pragma endscop
}
""", {"ni": 5, "nj": 6, "nk": 7, "alpha": 1.5, "beta": 1.2}),
    Program("vla-and-pointers", """
void f(int n, int m, double A[n][m], double (*B)[m], double *x, float *restrict y, double *out) {
  int last = n - 1;
  *out = 0;
  for (int i = 0; i <= last; i += 2)
    for (int j = m - 1; j >= 0; --j) {
      A[n - 1 - i][j] = B[i][j] * x[i] - (float)x[j];
      y[i] += A[i][j];
      *out += *(x + i) * (*(B + 1))[j];
    }
}
""", {"n": 5, "m": 4, "B": 5, "x": 5, "y": 5}),
    Program("triangular", """
void lu(int n, double A[n][n]) {
  int i, j, k;
  for (i = 0; i < n; i++) {
    for (j = 0; j < i; j++) { for (k = 0; k < j; k++) A[i][j] -= A[i][k] * A[k][j]; A[i][j] /= A[j][j] + 3; }
    for (j = i; j < n; j++) for (k = 0; k < i; k++) A[i][j] -= A[i][k] * A[k][j];
  }
}
""", {"n": 6}),
    Program("integers", """
#define SWAP(a) ((a) << 3 | (unsigned)(a) >> 2)
void f(int n, int *x, unsigned *u, long *l, signed char *c, short *s, unsigned char *b) {
  for (int i = 0; i < n; ++i) {
    c[i] += x[i]; s[i] = x[i] * 3; b[i] = c[i] - 1;
    u[i] = SWAP(x[i]) ^ 0xff; l[i] = (long)x[i] * 100000 + u[i] % 7;
    x[i] = -x[i] / 3 + x[i] % 5 - (x[i] > 2 && i != 1) + !x[i] + ~i + (c[i] < u[i]);
    l[i] += u[i] / -2 + 'a' - 3000000000 + 07;
  }
}
""", {"n": 8, "x": 8, "u": 8, "l": 8, "c": 8, "s": 8, "b": 8}),
    Program("loop-forms", """
void f(int n, int s, double *x, int *t) {
  int i, j = 3, k;
  for (i = 0; i != n; i++) x[i] += 1;
  t[0] = i;
  for (i = 1; n > i; i = i + 3) x[i] *= 2;
  t[1] = i;
  for (i = n - 1; i > 2; i -= 2) x[i] -= i;
  t[2] = i;
  for (i = 2; i < n; i += s) x[i] += s * i;
  t[3] = i;
  for (; j < n; ++j) x[j] += j;
  t[4] = j;
  for (i = 0, k = n - 1; i < k; i++, k--) { double h = x[i]; x[i] = x[k]; x[k] = h; }
  t[5] = i + 100 * k;
  for (i = n - 1; i >= 0; i -= s) { if (x[i] < 0) continue; x[i] = -x[i]; }
  t[6] = i;
  for (i = 0; i + 1 < n && i < 4; i++) x[i + 1] += x[i];
  t[7] = i;
  for (i = 5; i < 2; i++) x[0] = 99;
  t[8] = i;
  for (int i = 0; i < 3; i++) { int i = 7; x[i] += 1; }
}
""", {"n": 9, "s": 2, "x": 9, "t": 9}),
    Program("whiles", """
void f(int n, double *x, int *t) {
  int i = 0, steps = 0;
  while (i < n && x[i] < 50) { x[i] = x[i] * 2 + 1; if (x[i] > 10) i++; }
  for (i = 1; i < n; i *= 2) steps++;
  do { steps += 3; } while (steps < 20);
  for (i = 0; i < n; i++) { if (x[i] > 3) i++; x[i > n - 1 ? n - 1 : i] -= 1; }
  for (double z = 0; z < 1; z += 0.25) x[0] += z;
  t[0] = steps; t[1] = i;
}
""", {"n": 7, "x": 7, "t": 2}),
    Program("shadowing-and-copies", """
static const int PAD = 2;
enum { ONE = 1, TWO };
static inline double clamp(double v, double lo, double hi) { if (v < lo) return lo; return v > hi ? hi : v; }
static float weight(int d) { const float w = 0.5f; return w / (d + ONE); }
void f(int n, double alpha, double x[n + 2], float *y) {
  int m = n, idx;
  double tmp[n];
  alpha = alpha + 1;
  const double c[2][2] = {{1, 2}, {3}};
  for (int i = 0; i < m; i++) { idx = i + PAD - TWO; tmp[idx] = clamp(x[i + PAD], 0.25, 0.75) * alpha; }
  for (int i = 0; i < m; i++) {
    double m = tmp[i];
    { int m = i; y[m] = weight(i) + c[i & 1][i % 2]; }
    x[i] = m;
  }
}
""", {"n": 6, "alpha": 2.5, "y": 6}),
    Program("floats", """
#include <math.h>
typedef float real;
void f(int n, real *a, double *b, real k) {
  int i;
  real s = 0.1, t;
  for (i = 0; i < n; i++) {
    t = a[i] * k + 0.1;
    s += sqrtf(t * t) / 3 + fabs(b[i]);
    b[i] = pow(t, 2) + fmaxf(a[i], .5f) + (i ? 1.0 / i : 1e-3) + +t - floor(b[i] * 1E2);
    a[i] = a[i] > 0.5 ? s : (real)b[i];
    a[i] -= i; b[i] = s = a[i];
  }
}
""", {"n": 6, "k": 0.7, "a": 6, "b": 6}),
    Program("scop-in-a-function", """
void jacobi(int steps, int n, double A[n][n], double B[n][n]) {
  int t, i, j;
  double third = 1.0 / 3.0, unused = steps;
  A[0][0] = A[0][0];
#pragma scop
  for (t = 0; t < steps; t++) {
    for (i = 1; i < n - 1; i++)
      for (j = 1; j < n - 1; j++) B[i][j] = third * (A[i][j] + A[i][j-1] + A[1+i][j]);
    for (i = 1; i < n - 1; i++)
      for (j = 1; j < n - 1; j++) A[i][j] = B[i][j];
  }
#pragma endscop
  (void)unused;
}
""", {"steps": 3, "n": 6}),
    Program("globals", """
#define N 8
double A[N][N], total[N];
static const double w[3] = {0.25, 0.5, 0.25};
int scale = 3;
int i, j;
void blur(double *x) {
  for (i = 1; i < N - 1; i++)
    for (j = 0; j < 3; j++)
      total[i] += A[i][i - 1 + j] * w[j] * scale + x[i];
}
""", {"x": 8, "scale": 3}),
    Program("early-return", """
void f(int n, double *x) {
  if (n < 3) return;
  for (int i = 0; i < n; i++) {
    if (i % 2) { x[i] = 1; continue; }
    if (x[i] > 2) continue;
    else { x[i] += 5; }
    x[i] *= 2;
  }
  if (x[0] > 3) { x[1] = 0; return; } else x[2] = 0;
  x[3] = 9;
}
""", {"n": 5, "x": 5}),
    Program("unsigned-sizes", """
#include <stddef.h>
void f(size_t n, unsigned m, double A[n][m], const size_t *idx) {
  for (size_t i = 0; i < n; i++)
    for (unsigned j = 0; j + 0 < m; ++j) A[i][j] += (double)(i - 1 < n) + idx[i] % m;
  for (long r = n - 1; r >= 0; r--) A[r][0] -= r;
}
""", {"n": 4, "m": 3, "idx": 4}),
    Program("pointer-to-whole-array", """
void f(double (*A)[4][3], int (*v)[4]) {
  for (int i = 0; i < 4; i++) { for (int j = 0; j < 3; j++) (*A)[i][j] = (*A)[3 - i][j] + (*v)[i]; (*v)[i]++; }
}
""", {}),
)  # fmt: skip


def extent(e: Expr | None, name: str, sizes: dict[str, float]) -> int:
    if e is None:
        return int(sizes[name])
    value = substitute(e, {k: Const(int(v), "int32") for k, v in sizes.items()})
    while not isinstance(value, Const):
        value = value.arg
    return int(value.value)


def data(param: Array, shape: list[int], rng: np.random.Generator) -> np.ndarray:
    if param.dtype.startswith("f"):
        return (rng.random(shape) * 4).astype(param.dtype)
    return rng.integers(0, 9, shape).astype(param.dtype)


def compiled(program: Program, folder: Path) -> ctypes.CDLL:
    source, library = folder / "p.c", folder / "p.so"
    source.write_text(program.text)
    flags = ["-std=gnu11", "-O0", "-ffp-contract=off", "-fwrapv", "-w", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_the_interpreted_codelet_computes_what_gcc_computes(program: Program, tmp_path: Path) -> None:
    """Every array is bit for bit what the compiled function leaves in it."""
    unit = load(program.text)
    library = compiled(program, tmp_path)
    rng = np.random.default_rng(7)
    ours: dict[str, np.ndarray] = {}
    theirs: dict[str, np.ndarray] = {}
    arguments: list[object] = []
    outside: list[tuple[np.ndarray, object]] = []
    own = {"A", "total", "scale"} if program.name == "globals" else set()
    for p in unit.codelet.params:
        if isinstance(p, Scalar):
            if p.name not in own:
                arguments.append(C_TYPES[p.dtype](type(C_TYPES[p.dtype]().value)(program.sizes[p.name])))
            continue
        shape = [extent(e, p.name, program.sizes) for e in p.shape]
        ours[p.name] = data(p, shape, rng)
        theirs[p.name] = ours[p.name].copy()
        pointer = theirs[p.name].ctypes.data_as(ctypes.c_void_p)
        if p.name in own:
            there = (C_TYPES[p.dtype] * theirs[p.name].size).in_dll(library, p.name)
            ctypes.memmove(there, pointer, theirs[p.name].nbytes)
            outside.append((theirs[p.name], there))
        else:
            arguments.append(pointer)
    before = {name: array.copy() for name, array in ours.items()}
    getattr(library, unit.codelet.name)(*arguments)
    for array, there in outside:
        ctypes.memmove(array.ctypes.data_as(ctypes.c_void_p), there, array.nbytes)
    run(unit.codelet, ours, program.sizes)
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
    assert any(not np.array_equal(before[name], array) for name, array in ours.items()), "nothing was computed"
