#include <stdio.h>
#include <stdlib.h>
#pragma hmpp f codelet
void f(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = i < n - 1 ? x[i + 1] : 0; }
#pragma hmpp g codelet
void g(int n, const double *x, double *y) { for (int i = 0; i < n; i++) if (i + 1 < n && x[i + 1] > 3) y[i] += 1; }
#pragma hmpp h codelet
void h(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] += (i > 0 ? x[i - 1] : x[i]) + (i == n - 1 || x[i + 1] > 2); }
#pragma hmpp k codelet
void k(int n, int m, const double *x, double *y) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i * m + j] = i > 0 && j < m - 1 ? x[(i - 1) * m + j + 1] : x[i * m + j]; }
#pragma hmpp w codelet
void w(int n, const double *x, double *y) { int i = 0; while (i < n && x[i] < 100) { y[i] = x[i]; i++; } }
int main(void) { int n = 10; double *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y); for (int i = 0; i < n; i++) x[i] = i, y[i] = 1;
 f(n, x, y); g(n, x, y); h(n, x, y); k(2, 5, x, y); w(n, x, y); f(0, x, y); double s = 0; for (int i = 0; i < n; i++) s += y[i] * (i + 1); printf("%g\n", s); free(x); free(y); }
