// matvec  sizes: n=5 m=7; loops: parallel reduction
void f(int n, int m, float **a, const float *x, float *y) { for (int i = 0; i < n; i++) { float s = 0; for (int j = 0; j < m; j++) s += a[i][j] * x[j]; y[i] = s; } }
//----
// rows_of_rows  sizes: n=5 m=7; loops: parallel parallel
void f(int n, int m, double **a, double *const *b) { for (int i = 1; i < n - 1; i++) { double *r = a[i]; const double *up = b[i - 1], *down = *(b + i + 1); for (int j = 1; j < m - 1; j++) r[j] = up[j] + down[j] + b[i][j - 1] + b[i][j + 1]; } }
//----
// walking_rows  sizes: n=5 m=7; loops: parallel parallel
void f(int n, int m, float **a, float **b) { float **p = a; for (int i = 0; i < n; i++, p++) { float *q = *p; const float *s = b[i]; for (int j = 0; j < m; j++) *q++ = *s++ * 2; } }
//----
// table_of_file  sizes: n=5; loops: parallel parallel
#define N 6
double *rows[N]; static double **two;
void f(int n) { for (int i = 0; i < N; i++) for (int j = 0; j < n; j++) rows[i][j] = two[j][i]; }
//----
// three_levels  sizes: n=3 m=4 l=5; loops: parallel parallel parallel
void f(int n, int m, int l, float ***a, float **b) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) for (int k = 0; k < l; k++) a[i][j][k] += b[j][k] * i; }
//----
// rows_of_arrays  sizes: n=3; loops: parallel parallel parallel
void f(int n, float (**a)[4], float *b[3][2]) { for (int i = 0; i < n; i++) for (int j = 0; j < 2; j++) for (int k = 0; k < 4; k++) a[i][j][k] += b[i][j][k]; }
//----
// field  sizes: m_n=4 m_k=3; loops: parallel parallel
struct mat { int n, k; double **v; };
void f(struct mat *m, double s) { for (int i = 0; i < m->n; i++) for (int j = 0; j < m->k; j++) m->v[i][j] *= s; }
//----
// calls  sizes: n=4 m=5; loops: parallel reduction parallel
static double dot(int m, const double *x, const double *y) { double s = 0; for (int k = 0; k < m; k++) s += x[k] * y[k]; return s; }
static void scale(int m, double **a, int i, double by) { for (int j = 0; j < m; j++) a[i][j] *= by; }
void f(int n, int m, double **a, double **b) { for (int i = 0; i < n; i++) scale(m, a, i, dot(m, b[i], b[i])); }
//----
// part  sizes: n=4; loops: parallel parallel
#include <stdlib.h>
void f(int n, double **c) { double **a = malloc(n * sizeof *a); for (int i = 0; i < n; i++) a[i] = calloc(n, sizeof **a);
#pragma scop
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) a[i][j] = c[j][i];
#pragma endscop
  c[0][0] = a[1][1]; }
//----
// guarded  sizes: n=4 m=5; loops: parallel parallel
void f(int n, int m, float **a, float **b) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { float s = a[i][j]; if (j + 1 < m) s += a[i][j + 1]; if (j > 0) s += a[i][j - 1]; b[i][j] = s; } }
//----
// from_data  sizes: n=4 m=5 a_row=10; shapes: a=4x10 x=5 c=4; loops: reduction reduction
void f(int n, int m, float **a, const int *x, const int *c) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[c[i] % 4][x[j]] += 1; }
//----
// triangle  sizes: n=5; loops: sequential sequential reduction
void f(int n, double **a, double **l) { for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) { double s = a[i][j]; for (int k = 0; k < j; k++) s -= l[i][k] * l[j][k]; l[i][j] = s; } }
//----
// first_row  sizes: n=5; loops: parallel
void f(int n, float **out, const float *x) { for (int i = 0; i < n; i++) (*out)[i] = 2 * x[i]; }
//----
// allocated_rows  sizes: n=4 m=5; loops: parallel parallel parallel parallel
#include <stdlib.h>
void f(int n, int m, double *x, double *y) { double **t = malloc(n * sizeof *t);
  for (int i = 0; i < n; i++) t[i] = (double *)malloc(m * sizeof(double));
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) t[i][j] = x[j] * i;
  for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) y[i * m + j] = t[i][j] + t[i - 1][j];
  for (int i = 0; i < n; i++) free(t[i]);
  free(t); }
//----
// allocated_later  sizes: n=4; loops: parallel parallel parallel
#include <stdlib.h>
void f(int n, double *x) { double **t, **u, *v; int i; t = (double **)malloc(n * sizeof(double *)); u = malloc(sizeof *u * n); v = malloc(n * sizeof *v);
  if (t == NULL) exit(1);
  for (i = 0; i < n; ++i) { t[i] = malloc(3 * sizeof **t); u[i] = malloc(sizeof *u[i] * 3); if (!u[i]) abort(); for (int k = 0; k < 3; k++) t[i][k] = u[i][k] = k + x[i]; v[i] = x[i] * 2; }
  for (int i = 0; i < n; i++) x[i] = t[i][2] + u[i][1] + v[i];
  for (i = 0; i < n; i++) free(t[i]); x[0] += i; for (i = 0; i < n; i++) free(u[i]);
  free(t); free(u); free(v); }
