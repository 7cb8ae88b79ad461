#include <stdio.h>
#include <stdlib.h>
#define N 40
static int log_count;
#pragma hmpp a codelet
void a(int n, double *x) { if (n < 3) return; for (int i = 0; i < n; i++) x[i] += i; }
#pragma hmpp b codelet
void b(int n, double *x) { int i = 0; while (i < n) { x[i] *= 2; i += 2; } }
#pragma hmpp c codelet
void c(int n, double *x) { int i = 0; do { x[i] -= 1; i++; } while (i < n); }
#pragma hmpp d codelet
void d(int n, double *x, double *y) { double t[8]; for (int i = 0; i < n; i++) { for (int k = 0; k < 8; k++) t[k] = x[i] * k; y[i] = 0; for (int k = 0; k < 8; k++) y[i] += t[7 - k] * k; } }
#pragma hmpp e codelet
void e(int n, double *x, double *y) { double t[n]; for (int i = 0; i < n; i++) t[i] = x[i] + 1; for (int i = 0; i < n; i++) y[i] = t[n - 1 - i]; }
#pragma hmpp f codelet
void f(int n, double *x) { for (int i = 0; i < n; i++) { if (x[i] > 5) continue; if (i > 30) break; x[i] += 100; } }
#pragma hmpp g codelet
void g(int n, int *x) { for (int i = 0; i < n; i++) { switch (x[i] % 3) { case 0: x[i] = 5; break; case 1: x[i] += 7; default: x[i]--; } } }
#pragma hmpp h codelet
void h(int n, double *x) { double *p = x; for (int i = 0; i < n; i++) *p++ += 3; }
#pragma hmpp k codelet
void k(int n, double x[][N]) { for (int i = 0; i < n; i++) for (int j = i; j < N; j++) x[i][j] = x[i][j] + x[0][i]; }
#pragma hmpp l codelet
void l(double x[N][N], double (*y)[N]) { for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) y[j][i] = x[i][j]; }
#pragma hmpp m codelet
void m(int n, double *x) { static const double w[3] = { 1, 2, 3 }; for (int i = 1; i < n - 1; i++) x[i] = x[i - 1] * w[0] / 6 + x[i] * w[1] / 6 + x[i + 1] * w[2] / 6; }
static double sq(double v) { return v * v + log_count; }
#pragma hmpp o codelet
void o(int n, double *x) { for (int i = 0; i < n; i++) x[i] = sq(x[i] / 100); }
#pragma hmpp q codelet
void q(int n, double *x, double *s) { double u = *s; for (int i = 0; i < n; i++) { u += x[i]; log_count++; } *s = u; }
#pragma hmpp r codelet
void r(int n, int a, double *x) { n = n - a; a *= 2; for (int i = 0; i < n; i++) x[i] += a; }
#pragma hmpp t codelet
void t(int n, double *x) { for (int i = 0; i < n; i++) { x[i] += 1; } for (int i = 0; i < n; i++) { if (x[i] > 1e9) goto out; x[i] += 1; } out: ; }
int main(void)
{
    static double x[N], y[N], X[N][N], Y[N][N], s = 0; static int v[N];
    for (int i = 0; i < N; i++) { x[i] = (i * 13) % 17; y[i] = i; v[i] = i; for (int j = 0; j < N; j++) X[i][j] = i * j % 7; }
    for (int it = 0; it < 2; it++) {
    a(N, x); a(2, x); b(N, x); c(N, x); c(0, x); d(N, x, y); e(N, x, y); f(N, x); g(N, v); h(N, x); k(N - 3, X); l(X, Y); m(N, x); o(N, x); q(N, x, &s); r(N, 4, x); t(N, x);
    printf("%d %g\n", log_count, s);
    }
    for (int i = 0; i < N; i++) { s += x[i] * i + y[i] * (i % 3) + v[i]; for (int j = 0; j < N; j++) s += X[i][j] * Y[j][i] + Y[i][j] * j; }
    printf("%.17g\n", s);
}
