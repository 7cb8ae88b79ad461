#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#pragma hmpp a codelet
void a(size_t n, double *x) { for (size_t i = 0; i < n; i++) x[i] = x[i] * 2 + i; }
#pragma hmpp b codelet
void b(unsigned n, unsigned m, double *x) { for (unsigned i = 0; i < n - m; i++) x[i] += i; }
#pragma hmpp c codelet
void c(int64_t n, int64_t lo, float *x) { for (int64_t i = n - 1; i >= lo; i--) x[i] = x[i] + i; }
#pragma hmpp d codelet
void d(int n, int s, double *x) { for (int i = 0; i < n; i += 3) x[i] = s + i; for (int i = n - 1; i > 0; i -= 2) x[i] -= i; }
#pragma hmpp e codelet
void e(unsigned char n, short m, double *x) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) x[i * m + j] += i - j; }
#pragma hmpp f codelet
void f(int n, int off, double *x, double *y) { for (int i = 0; i < n; i++) x[i + off] = y[i * 2] + y[2 * i + 1]; }
#pragma hmpp g codelet
void g(long n, double *x) { if (n > 5) for (long i = 5; i < n; i++) x[i - 5] = x[i] ; }
#pragma hmpp h codelet
void h(int n, double *x, double *y) { for (int i = 0; i < n; i++) { if (i % 2) y[i / 2] = x[i]; else x[i] = 1; } }
#pragma hmpp z codelet
void z(int n, int m, int k, double x[n][m][k]) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) for (int l = 0; l < k; l++) x[i][j][l] = i + j + l; }
int main(int argc, char **argv)
{
    int N = argc > 1 ? atoi(argv[1]) : 40;
    double *x = calloc(200 + N * 4, sizeof *x), *y = calloc(200 + N * 4, sizeof *y); float *w = calloc(N + 5, sizeof *w);
    a(N, x); b(N + 2, 2, x); c(N, 0, w); c(N, 3, w); d(N, 3, y); d(0, 3, y); e(3, 4, x); e(0, 0, x); e(3, -2, x);
    f(N, 5, x, y); f(0, 5, NULL, NULL); f(-3, 5, x, y); f(N / 2, -0, x, y); f(N, 3, x + 10, y); f(N / 2, -2, x + 10, y);
    g(N, x); g(3, x); h(N, x, y); h(0, 0, 0); a(0, NULL); z(0, 1 << 20, 1 << 20, NULL); z(2, 3, 4, (void *)x); z(1 << 20, 0, 1 << 20, NULL); z(1, 2, 0, (void*)x); z(1<<10, 1<<10, -4, 0);
    b(2, 2, NULL); c(0, 0, 0); c(-5, 0, 0);
    double s = 0; for (int i = 0; i < 200 + N * 4; i++) s += x[i] * (i % 7) + y[i] * (i % 5); for (int i = 0; i < N; i++) s += w[i];
    printf("%.17g\n", s);
    return 0;
}
