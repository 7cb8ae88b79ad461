"""C programs in the styles of published HMPP files: each calls its codelets from ``program``, which gcc can call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """``program`` are the group's parameters in the order of the C function ``program``."""

    name: str
    text: str
    program: tuple[str, ...]
    sizes: dict[str, int | float]


GROUP_WITH_MAP = """
/* two products in a row, verified on the host as published programs do */
#include <stdio.h>
#include "../../common/timers.h"
#define NI 7
#define NJ 9
#define NK 6
/* Can switch DATA_TYPE between float and double */
typedef float DATA_TYPE;

#pragma hmpp <pair> group, target=CUDA

#pragma hmpp <pair> map, args[first::c, second::c]
#pragma hmpp <pair> map, args[*::s]

#pragma hmpp <pair> first codelet, args[a;b;c].io=inout
static
void product(DATA_TYPE a[NI][NK], DATA_TYPE b[NK][NJ], DATA_TYPE c[NI][NJ], DATA_TYPE s)
{
  int i, j, k;

  #pragma hmppcg grid blocksize 32 X 8

  #pragma hmppcg parallel
  for (i = 0; i < NI; i++)
  {
    #pragma hmppcg parallel
    for (j = 0; j < NJ; j++)
    {
      c[i][j] = 0;
      #pragma hmppcg unroll 3, split, guarded
      #pragma hmppcg noParallel
      for (k = 0; k < NK; ++k)
      {
        c[i][j] += s * a[i][k] * b[k][j];
      }
    }
  }
}

#pragma hmpp <pair> second codelet, &
#pragma hmpp <pair> & args[c;y].io=inout, &
#pragma hmpp &        args[s].io=in
static
void rows(DATA_TYPE c[NI][NJ], DATA_TYPE x[NJ], DATA_TYPE y[NI], DATA_TYPE s)
{
  int i, j;
  #pragma hmppcg permute j, i
  #pragma hmppcg grid blocksize "64x4"
  for (i = 0; i < NI; i++)
  {
    for (j = 0; j < NJ; j++)
    {
      y[i] += c[i][j] * x[j] + s;
    }
  }
}

double rtclock(void);

void program(DATA_TYPE A[NI][NK], DATA_TYPE B[NK][NJ], DATA_TYPE C_gpu[NI][NJ], DATA_TYPE x[NJ], DATA_TYPE y_gpu[NI],
             DATA_TYPE scale)
{
  #pragma hmpp <pair> allocate
  #pragma hmpp <pair> first advancedload, args[a;b;c]
  #pragma hmpp <pair> first callsite, args[a;b;c].advancedload=true, asynchronous
  product(A, B, C_gpu, scale);
  #pragma hmpp <pair> first synchronize
  #pragma hmpp <pair> second callsite, args[c].advancedload=true, asynchronous
  rows(C_gpu, x, y_gpu, scale);
  #pragma hmpp <pair> second synchronize
  #pragma hmpp <pair> second delegatedstore, args[y]
  #pragma hmpp <pair> release
}

void verify(DATA_TYPE A[NI][NK], DATA_TYPE B[NK][NJ], DATA_TYPE x[NJ])
{
  DATA_TYPE C[NI][NJ], y[NI];
  product(A, B, C, 2);
  rows(C, x, y, 2);
}
"""

BY_NAME = """
/* variable-length arrays, names mapped however they are written, a result handed on by value */
#include <math.h>
# pragma hmpp <norm> group, target=CUDA:OPENCL
#pragma hmpp <norm> mapbyname n, m x
#pragma hmpp <norm> mapbyname x,

#pragma hmpp <norm> length codelet, args[out].io=out, args[*].transfer=atcall
void length(int n, int m, double x[n][m], double *out)
{
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      sum += x[i][j] * x[i][j];
  *out = sqrt(sum);
}

#pragma hmpp <norm> scale codelet, args[x].io=inout
void scale(int n, int m, double by, double x[n][m])
{
#define COLUMN(j) x[i][(j)]
  # pragma hmppcg gridify(i, j), blocksize 16x8
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      COLUMN(j) = COLUMN(j) / by;
}

void program(int rows, int columns, double *data, double *norm)
{
  double by;
#pragma hmpp <norm> length callsite
  length(rows, columns, (double (*)[columns]) data, norm);
  by = 1;
#pragma hmpp <norm> scale callsite
  scale(rows, columns, *norm, (double (*)[columns]) data);
}
"""

TWICE = """
/* a codelet of its own label called twice, through a function and a pointer; integers */
#define BLOCK 16X16
#pragma hmpp blur codelet, target=CUDA, args[to].io=out
void blur(int n, int *from, int *to)
{
  int i;
  #pragma hmppcg(CUDA) grid blocksize BLOCK
  #pragma hmppcg(OPENCL) noparallel
  for (i = 0; i < n; i++)
    to[i] = i > 0 && i < n - 1 ? (from[i - 1] + 2 * from[i] + from[i + 1]) / 4 : from[i];
}

#pragma hmpp mix codelet, target=CUDA, args[1].io=inout
void mix(int size, int x[size], const int weight[static 4])
{
  int k, i = 3;
  #pragma hmppcg unroll(2), guarded
  for (k = size - 1; k >= 0; --k)
    x[k] = x[k] * weight[k % 4] + i;
}

void steps(int count, int *u, int *v, int *w)
{
  int *front = v;
  #pragma hmpp blur callsite
  blur(count, u, front);
  #pragma hmpp blur callsite
  blur(count, &front[0], u);
  #pragma hmpp mix callsite
  mix(count, u, w);
}

void program(int n, int *a, int *b, int *w) { steps(n, a, b, w); }
"""

MIXED = """
/* one array that two codelets declare differently, names that clash, several types */
typedef double real;
#pragma hmpp <g> group
#pragma hmpp <g> flat codelet
void flat(int n, int m, float *restrict a, real *x, const unsigned char *mask)
{
  real t = 0.5;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      t = mask[j] ? x[i] : 1;
      a[i * m + j] += t * (j + 1);
    }
}
#pragma hmpp <g> square codelet, args[a].io=inout
void square(int n, int m, float a[n][m], float x[m], long *count)
{
  int t[4];
  for (int k = 0; k < 4; k++) t[k] = k;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++)
      x[j] += a[i][j] + t[j % 4];
    count[i] = i * m;
  }
}
void program(int rows, int columns, float *image, double *weight, const unsigned char *mask, float *sums, long *count)
{
#pragma hmpp <g> flat callsite
  flat(rows, columns, image, weight, mask);
#pragma hmpp <g> square callsite
  square(rows, columns, image, sums, count);
}
"""

MALFORMED = """
/* what published files get wrong */
#define N 11
#pragma hmpp <g> group, target=CUDA
#pragma hmpp <g> map, args[one::y, two::x]
#pragma hmpp <g> one codelet, target=CUDA args[y].io=out, &
#pragma hmpp <g> & args[spare].io=in &
#pragma hmpp &     args[x].io=in
void one(float x[N], float y[N]) {
  int i;
  #pragma hmppcg gridify(i), private(i) &
  #pragma hmppcg & blocksize 32x4
  for (i = 0; i < N; i++) y[i] = 2 * x[i];
}
#pragma hmpp <g> two codelet, args[x].io=in
void two(float x[N]) {
  int i;
  #pragma hmppcg noparallel
  for (i = 1; i < N; i++) x[i] = x[i] + x[i - 1];
}
void program(float a[N], float b[N]) {
  #pragma hmpp <g> one callsite, args[x;y].advancedload=true
  #pragma hmpp <g> two advancedload, args[x], &
  one(a, b);
  #pragma hmpp <g> three synchronize
  two(b);
  #pragma hmpp <g> two delegatestore, args[x]
  #pragma hmpp <g> two callsite
  ;
}
"""

STYLES = (
    Style("map", GROUP_WITH_MAP, ("a", "b", "c", "x", "y", "s"), {"s": 1.5}),
    Style("by_name", BY_NAME, ("n", "m", "x", "out"), {"n": 7, "m": 5}),
    Style("twice", TWICE, ("n", "from", "to", "weight"), {"n": 23}),
    Style("mixed", MIXED, ("n", "m", "a", "x", "mask", "sums", "count"), {"n": 6, "m": 8}),
    Style("malformed", MALFORMED, ("x", "y"), {}),
)
