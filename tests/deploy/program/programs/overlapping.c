#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N 64
#pragma hmpp ax codelet
void ax(int n, double f, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] += f * x[i]; }
#pragma hmpp sh codelet
void sh(int n, double *x, double *y) { for (int i = 1; i < n; i++) { y[i] = x[i - 1] + 1; x[i] = y[i - 1]; } }
#pragma hmpp cp codelet
void cp(int n, double *x, const double *y) { for (int i = 0; i < n; i++) x[i] = y[i]; }
#pragma hmpp two codelet
void two(int n, const double *x, const double *y, double *z) { for (int i = 0; i < n; i++) z[i] = x[i] * y[n - 1 - i]; }
static double G[N];
#pragma hmpp glob codelet
void glob(int n, double *x) { for (int i = 0; i < n; i++) G[i] += x[i]; }
#pragma hmpp globr codelet
void globr(int n, double *x) { for (int i = 1; i < n; i++) x[i] = G[i - 1] + 1; }
static double run(int n, double *a, double *b) {
    for (int i = 0; i < n; i++) { a[i] = i; b[i] = i % 5; G[i] = 1; }
    ax(n, 2, a, b); ax(n, 2, a, a); ax(n - 1, .5, a + 1, a); ax(n - 1, .5, a, a + 1);
    sh(n, a, b); sh(n, a, a); sh(n - 3, a, a + 3); sh(n / 2, a, a + n / 2);
    cp(n, a, b); cp(n - 2, a, a + 2); cp(n - 2, a + 2, a);
    two(n, a, a, b); two(n - 1, a, a + 1, b); two(n, b, b, b);
    glob(n, a); glob(n, G); glob(n - 1, G + 1); globr(n, a); globr(n, G); globr(n - 1, G + 1);
    /* regions that overlap between calls */
    ax(n / 2, 2, a, b); ax(n / 2, 2, a + n / 4, b + n / 4); ax(n, 1, a, b); ax(n / 4, 1, b + 3, a + 5); ax(n, 1, b, a);
    a[0] = 77; ax(n, 1, a, b); b[n - 1] = -5; cp(n, a, b);
    memset(a, 0, sizeof *a * 4); ax(n, 1, a, b);
    double s = 0; for (int i = 0; i < n; i++) s += a[i] * (i + 1) + b[i] * 3 + G[i] * i; return s;
}
int main(void) { double a[N], *b = malloc(sizeof a), r = run(N, a, b); printf("%.17g\n", r);
  for (int k = 0; k < 5; k++) { double *c = malloc((N + k) * sizeof *c), *d = malloc((N + k) * sizeof *d); printf("%.17g\n", run(N - k, c, d)); free(c); free(d); } 
  r = run(1, a, b); printf("%g\n", r); }
