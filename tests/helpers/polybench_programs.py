"""Programs in the style of PolyBench/C 4: a header of macros, sizes and types by -D, a scop in a kernel function.

Each prints its live-out arrays at the end of ``main``, so that gcc alone says what it computes.
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER = """#ifndef POLYBENCH_H
#define POLYBENCH_H
#include <stdio.h>
#include <stdlib.h>
#ifdef POLYBENCH_USE_C99_PROTO
# define SELECT(fixed, passed) passed
#else
# define SELECT(fixed, passed) fixed
#endif
#ifdef POLYBENCH_USE_SCALAR_LB
# define POLYBENCH_LOOP_BOUND(fixed, passed) fixed
#else
# define POLYBENCH_LOOP_BOUND(fixed, passed) passed
#endif
#ifndef PAD
# define PAD 0
#endif
#define POLYBENCH_1D(a, N, n) a[SELECT(N, n) + PAD]
#define POLYBENCH_2D(a, N, M, n, m) a[SELECT(N, n) + PAD][SELECT(M, m) + PAD]
#ifdef POLYBENCH_STACK_ARRAYS
# define POLYBENCH_ARRAY(a) a
# define POLYBENCH_1D_ARRAY_DECL(a, type, N, n) type POLYBENCH_1D(a, N, n);
# define POLYBENCH_2D_ARRAY_DECL(a, type, N, M, n, m) type POLYBENCH_2D(a, N, M, n, m);
# define POLYBENCH_FREE_ARRAY(a)
#else
# define POLYBENCH_ARRAY(a) *a
# define POLYBENCH_1D_ARRAY_DECL(a, type, N, n) \\
  type POLYBENCH_1D((*a), N, n); a = (type (*)[SELECT(N, n) + PAD]) polybench_alloc_data(sizeof *a);
# define POLYBENCH_2D_ARRAY_DECL(a, type, N, M, n, m) type POLYBENCH_2D((*a), N, M, n, m); \\
  a = (type (*)[SELECT(N, n) + PAD][SELECT(M, m) + PAD]) polybench_alloc_data(sizeof *a);
# define POLYBENCH_FREE_ARRAY(a) free((void *) a);
#endif
#ifdef DATA_TYPE_IS_FLOAT
# define DATA_TYPE float
# define SCALAR_VAL(x) x##f
# define SQRT_FUN(x) sqrtf(x)
# define EXP_FUN(x) expf(x)
# define POW_FUN(x, y) powf(x, y)
#else
# define DATA_TYPE double
# define SCALAR_VAL(x) x
# define SQRT_FUN(x) sqrt(x)
# define EXP_FUN(x) exp(x)
# define POW_FUN(x, y) pow(x, y)
#endif
#define SHOW(value) printf("%.17g\\n", (double) (value));
extern void *polybench_alloc_data(unsigned long bytes);
#endif
"""

SUPPORT = """#include <stdlib.h>
void *polybench_alloc_data(unsigned long bytes) { return calloc(1, bytes); }
"""

SIZES = """#if !defined(N) && !defined(T)
# ifdef MINI_DATASET
#  define N 7
#  define T 3
# endif
# ifdef MEDIUM_DATASET
#  define N 90
#  define T 20
# endif
#endif
#define _PB_N POLYBENCH_LOOP_BOUND(N, n)
#define _PB_T POLYBENCH_LOOP_BOUND(T, t)
"""

_TOP = """#include <math.h>
#include <string.h>
#include <polybench.h>
#include "sizes.h"
"""


@dataclass(frozen=True)
class Style:
    """``shown`` are the arrays that ``main`` prints, in order."""

    name: str
    text: str
    shown: tuple[str, ...]


SMOOTH = Style(
    "smooth",
    _TOP
    + """
static void init(int n, DATA_TYPE POLYBENCH_2D(u,N,N,n,n), DATA_TYPE POLYBENCH_2D(v,N,N,n,n)) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) { u[i][j] = (DATA_TYPE) (i * (j + 2) + 1) / n; v[i][j] = u[i][j] - 1; }
}

static
void kernel_smooth(int t, int n,
                   DATA_TYPE POLYBENCH_2D(u,N,N,n,n),
                   DATA_TYPE POLYBENCH_2D(v,N,N,n,n))
{
  int s, i, j;

#pragma scop
  for (s = 1; s <= _PB_T; s++) {
    for (i = 1; i < _PB_N - 1; i++)
      for (j = 1; j < _PB_N - 1; j++)
        v[i][j] = SCALAR_VAL(0.2) * (u[i][j] + u[i][j-1] + u[i][1+j] + u[1+i][j] + u[i-1][j]);
    for (i = 1; i < _PB_N - 1; i++)
      for (j = 1; j < _PB_N - 1; j++)
        u[i][j] += SCALAR_VAL(0.5) * (v[i][j] - u[i][j]);
  }
#pragma endscop
}

int main(int argc, char **argv) {
  int n = N;
  int t = T;
  POLYBENCH_2D_ARRAY_DECL(u, DATA_TYPE, N, N, n, n);
  POLYBENCH_2D_ARRAY_DECL(v, DATA_TYPE, N, N, n, n);
  init(n, POLYBENCH_ARRAY(u), POLYBENCH_ARRAY(v));
  kernel_smooth(t, n, POLYBENCH_ARRAY(u), POLYBENCH_ARRAY(v));
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) SHOW((POLYBENCH_ARRAY(u))[i][j])
  POLYBENCH_FREE_ARRAY(u);
  POLYBENCH_FREE_ARRAY(v);
  return 0;
}
""",
    ("u",),
)

SOLVE = Style(
    "solve",
    _TOP
    + """
static void init(int n, DATA_TYPE POLYBENCH_2D(L,N,N,n,n), DATA_TYPE POLYBENCH_1D(b,N,n)) {
  for (int i = 0; i < n; i++) {
    b[i] = i + 4;
    for (int j = 0; j < n; j++) L[i][j] = (DATA_TYPE) (i + n - j + 1) * 2 / n;
  }
}

static void kernel_solve(int n, DATA_TYPE POLYBENCH_2D(L,N,N,n,n), DATA_TYPE POLYBENCH_1D(b,N,n),
                         DATA_TYPE POLYBENCH_1D(x,N,n), DATA_TYPE POLYBENCH_1D(y,N,n))
{
  int i, j;
  DATA_TYPE w;
#pragma scop
  for (i = 0; i < _PB_N; i++) {
    w = b[i];
    for (j = 0; j < i; j++)
      w -= L[i][j] * y[j];
    y[i] = w / L[i][i];
  }
  for (i = _PB_N-1; i >=0; i--) {
    w = y[i];
    for (j = i+1; j < _PB_N; j++)
      w -= L[j][i] * x[j];
    x[i] = w / L[i][i];
  }
#pragma endscop
}

int main(void) {
  int n = N;
  POLYBENCH_2D_ARRAY_DECL(L, DATA_TYPE, N, N, n, n);
  POLYBENCH_1D_ARRAY_DECL(b, DATA_TYPE, N, n);
  POLYBENCH_1D_ARRAY_DECL(x, DATA_TYPE, N, n);
  POLYBENCH_1D_ARRAY_DECL(y, DATA_TYPE, N, n);
  init(n, POLYBENCH_ARRAY(L), POLYBENCH_ARRAY(b));
  kernel_solve(n, POLYBENCH_ARRAY(L), POLYBENCH_ARRAY(b), POLYBENCH_ARRAY(x), POLYBENCH_ARRAY(y));
  for (int i = 0; i < n; i++) SHOW((POLYBENCH_ARRAY(x))[i])
  for (int i = 0; i < n; i++) SHOW((POLYBENCH_ARRAY(y))[i])
  return 0;
}
""",
    ("x", "y"),
)

FOLD = Style(
    "fold",
    _TOP
    + """
typedef char letter;
#define pairs(a, b) (((a)+(b)) == 3 ? 1 : 0)
#define better(a, b) ((a >= b) ? a : b)

static void kernel_fold(int n, letter POLYBENCH_1D(seq,N,n), int POLYBENCH_2D(score,N,N,n,n))
{
  int i, j, k;

#pragma scop
 for (i = _PB_N-1; i >= 0; i--) {
  for (j=i+1; j<_PB_N; j++) {
   if (j-1>=0)
      score[i][j] = better(score[i][j], score[i][j-1]);
   if (i+1<_PB_N)
      score[i][j] = better(score[i][j], score[i+1][j]);
   if (j-1>=0 && i+1<_PB_N) {
     if (i<j-1)
        score[i][j] = better(score[i][j], score[i+1][j-1]+pairs(seq[i], seq[j]));
     else
        score[i][j] = better(score[i][j], score[i+1][j-1]);
   }
   for (k=i+1; k<j; k++) {
      score[i][j] = better(score[i][j], score[i][k] + score[k+1][j]);
   }
  }
 }
#pragma endscop
}

int main(void) {
  int n = N;
  POLYBENCH_1D_ARRAY_DECL(seq, letter, N, n);
  POLYBENCH_2D_ARRAY_DECL(score, int, N, N, n, n);
  for (int i = 0; i < n; i++) {
    (POLYBENCH_ARRAY(seq))[i] = (letter) ((3 * i + 1) % 4);
    for (int j = 0; j < n; j++) (POLYBENCH_ARRAY(score))[i][j] = 0;
  }
  kernel_fold(n, POLYBENCH_ARRAY(seq), POLYBENCH_ARRAY(score));
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) SHOW((POLYBENCH_ARRAY(score))[i][j])
  return 0;
}
""",
    ("score",),
)

FILTER = Style(
    "filter",
    _TOP
    + """
static void start(int n, DATA_TYPE* alpha, float POLYBENCH_2D(in,N,N,n,n)) {
  *alpha = 0.25;
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) in[i][j] = ((31 * i + 99 * j) % 64) / 63.0f;
}

static void kernel_filter(int n, DATA_TYPE alpha, float POLYBENCH_2D(in,N,N,n,n), DATA_TYPE POLYBENCH_2D(out,N,N,n,n)) {
    int i,j;
    DATA_TYPE xm1, ym1, ym2;
    DATA_TYPE k, a1, a2, b1, b2, c1, c2;

#pragma scop
   k = (SCALAR_VAL(1.0)-EXP_FUN(-alpha))*(SCALAR_VAL(1.0)-EXP_FUN(-alpha))/(SCALAR_VAL(1.0)+SCALAR_VAL(2.0)*alpha);
   a1 = a2 = k*EXP_FUN(-alpha);
   b1 =  POW_FUN(SCALAR_VAL(2.0),-alpha);
   b2 = -EXP_FUN(SCALAR_VAL(-2.0)*alpha);
   c1 = c2 = 1;

   for (i=0; i<_PB_N; i++) {
        ym1 = SCALAR_VAL(0.0);
        ym2 = SCALAR_VAL(0.0);
        xm1 = SCALAR_VAL(0.0);
        for (j=0; j<_PB_N; j++) {
            out[i][j] = a1*in[i][j] + a2*xm1 + b1*ym1 + b2*ym2;
            xm1 = in[i][j];
            ym2 = ym1;
            ym1 = out [i][j];
        }
    }
    for (i=0; i<_PB_N; i++) {
        ym1 = SCALAR_VAL(0.0);
        for (j=_PB_N-1; j>=0; j--) {
            ym2 = ym1; ym1 = out[i][j];
            out[i][j] = c1 * (ym1 + b1*ym2);
        }
    }
    for (i=0; i<_PB_N; i++)
        for (j=0; j<_PB_N; j++)
            out[i][j] = c2*(out[i][j] + in[i][j]);
#pragma endscop
}

int main(void) {
  int n = N;
  DATA_TYPE alpha;
  POLYBENCH_2D_ARRAY_DECL(in, float, N, N, n, n);
  POLYBENCH_2D_ARRAY_DECL(out, DATA_TYPE, N, N, n, n);
  start(n, &alpha, POLYBENCH_ARRAY(in));
  kernel_filter(n, alpha, POLYBENCH_ARRAY(in), POLYBENCH_ARRAY(out));
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) SHOW((POLYBENCH_ARRAY(out))[i][j])
  return 0;
}
""",
    ("out",),
)

RECURSION = Style(
    "recursion",
    _TOP
    + """
static void kernel_recursion(int n, DATA_TYPE POLYBENCH_1D(r,N,n), DATA_TYPE POLYBENCH_1D(y,N,n))
{
 DATA_TYPE z[N];
 DATA_TYPE alpha;
 DATA_TYPE beta;
 DATA_TYPE sum;

 int i,k;

#pragma scop
 y[0] = -r[0];
 beta = SCALAR_VAL(1.0);
 alpha = -r[0];
 for (k = 1; k < _PB_N; k++) {
   beta = (1-alpha*alpha)*beta;
   sum = SCALAR_VAL(0.0);
   for (i=0; i<k; i++) {
      sum += r[k-i-1]*y[i];
   }
   alpha = - (r[k] + sum)/beta;
   for (i=0; i<k; i++) {
      z[i] = y[i] + alpha*y[k-i-1];
   }
   for (i=0; i<k; i++) {
     y[i] = z[i];
   }
   y[k] = alpha;
 }
#pragma endscop
}

int main(void) {
  int n = N;
  POLYBENCH_1D_ARRAY_DECL(r, DATA_TYPE, N, n);
  POLYBENCH_1D_ARRAY_DECL(y, DATA_TYPE, N, n);
  for (int i = 0; i < n; i++) (POLYBENCH_ARRAY(r))[i] = (n + 1 - i);
  kernel_recursion(n, POLYBENCH_ARRAY(r), POLYBENCH_ARRAY(y));
  for (int i = 0; i < n; i++) SHOW((POLYBENCH_ARRAY(y))[i])
  return 0;
}
""",
    ("y",),
)

CENTRE = Style(
    "centre",
    _TOP
    + """
static void begin(int n, DATA_TYPE *count, int t, DATA_TYPE POLYBENCH_2D(data,N,T,n,t)) {
  *count = (DATA_TYPE) n;
  for (int i = 0; i < n; i++) for (int j = 0; j < t; j++) data[i][j] = (DATA_TYPE) (i * j) / t + (j ? i : 2);
}

static void kernel_centre(int t, int n, DATA_TYPE count, DATA_TYPE data[][SELECT(T, t)], DATA_TYPE *mean, long *above)
{
  int i, j;
  DATA_TYPE eps = SCALAR_VAL(0.1), dev[T];
#pragma scop
  for (j = 0; j < _PB_T; j++) {
    mean[j] = SCALAR_VAL(0.0);
    for (i = 0; i < _PB_N; i++) mean[j] += data[i][j];
    mean[j] /= count;
  }
  for (j = 0; j < _PB_T; j++) {
    dev[j] = SCALAR_VAL(0.0);
    for (i = 0; i < _PB_N; i++)
      dev[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
    dev[j] = SQRT_FUN(dev[j] / count);
    dev[j] = dev[j] <= eps ? SCALAR_VAL(1.0) : dev[j];
  }
  for (i = 0; i < _PB_N; i++) {
    above[i] = 0;
    for (j = 0; j < _PB_T; j++) {
      data[i][j] -= mean[j];
      data[i][j] /= SQRT_FUN(count) * dev[j];
      above[i] += data[i][j] > 0;
    }
  }
#pragma endscop
}

int main(void) {
  int n = N, t = T;
  DATA_TYPE count;
  long above[N];
  POLYBENCH_2D_ARRAY_DECL(data, DATA_TYPE, N, T, n, t);
  POLYBENCH_1D_ARRAY_DECL(mean, DATA_TYPE, T, t);
  begin(n, &count, t, POLYBENCH_ARRAY(data));
  kernel_centre(t, n, count, POLYBENCH_ARRAY(data), POLYBENCH_ARRAY(mean), above);
  for (int i = 0; i < n; i++) for (int j = 0; j < t; j++) SHOW((POLYBENCH_ARRAY(data))[i][j])
  for (int j = 0; j < t; j++) SHOW((POLYBENCH_ARRAY(mean))[j])
  for (int i = 0; i < n; i++) SHOW(above[i])
  return 0;
}
""",
    ("data", "mean", "above"),
)

ALL = (SMOOTH, SOLVE, FOLD, FILTER, RECURSION, CENTRE)
