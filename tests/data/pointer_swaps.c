// swap_at_end  sizes: n=9 T=5; loops: sequential parallel parallel
void f(int T, int n, double *a, double *b) { for (int t = 0; t < T; t++) { for (int i = 1; i < n - 1; i++) b[i] = a[i - 1] + a[i + 1]; double *tmp = a; a = b; b = tmp; } }
//----
// swap_and_use  sizes: n=9 T=5; loops: sequential parallel parallel parallel parallel
void f(int T, int n, float *a, float *b, float *out) { float *tmp; int t; for (t = 1; t <= T; ++t) { for (int i = 1; i < n - 1; i++) b[i] = a[i - 1] * t; tmp = a; a = b; b = tmp; } for (int i = 0; i < n; i++) out[i] = a[i] - b[i]; out[0] = t; }
//----
// swap_first_down  sizes: n=9 T=4; loops: sequential parallel parallel parallel parallel
void f(int T, int n, float *a, float *b) { for (int t = T; t > 0; t--) { float *tmp = a; a = b; b = tmp; float s = a[0]; for (int i = 1; i < n; i++) b[i] = a[i - 1] * t + s; } for (int i = 0; i < n; i++) a[i] += 1; }
//----
// loop_left_before_swap  sizes: n=9 T=5; shapes: a=9 b=9 c=5; loops: sequential sequential sequential
void f(int T, int n, double *a, double *b, int *c) { for (int t = 0; t < T; t++) { for (int i = 1; i < n - 1; i++) { b[i] = a[i - 1] + a[i + 1]; if (b[i] < 0) break; c[t]++; } double *tmp = a; a = b; b = tmp; } }
//----
// rotation  sizes: n=9 T=5; loops: sequential parallel parallel parallel
void f(int T, int n, float *u, float *v, float *w) { for (int t = 0; t < T; t++) { for (int i = 1; i < n - 1; i++) w[i] = 2 * v[i] - u[i] + v[i - 1] + v[i + 1]; float *p = u; u = v; v = w; w = p; } }
//----
// nested_in_repetition  sizes: n=9 T=3 R=3; loops: sequential sequential parallel parallel parallel parallel
void f(int R, int T, int n, float *a, float *b) { for (int r = 0; r < R; r++) { for (int t = 0; t < T; t++) { for (int i = 1; i < n - 1; i++) b[i] = a[i - 1] + a[i + 1]; float *tmp = a; a = b; b = tmp; } for (int i = 0; i < n; i++) a[i] += 1; } }
//----
// until_small  sizes: n=9 T=7; loops: parallel sequential parallel sequential parallel parallel
void f(int T, int n, float *a, float *b, float *o) { int t = 0; float e = 99; while (e > 0.1f && t < T) { e = 0; for (int i = 1; i < n - 1; i++) b[i] = 0.5f * (a[i - 1] + a[i + 1]); for (int i = 1; i < n - 1; i++) e += (a[i] - b[i]) * (a[i] - b[i]); { float *tmp = b; b = a; a = tmp; } t++; } for (int i = 0; i < n; i++) o[i] = a[i]; }
//----
// swap_in_condition  sizes: n=9 T=6; loops: sequential parallel parallel
void f(int T, int n, float *a, float *b, const int *c) { for (int t = 0; t < T; t++) { for (int i = 1; i < n; i++) b[i] += a[i - 1] * 0.5f; if (c[t] > 4) { float *tmp = a; a = b; b = tmp; } } }
//----
// swapped_rows  sizes: n=5 m=6 T=3; loops: sequential parallel parallel parallel parallel
#define SWAP(T, x, y) do { T t_ = x; x = y; y = t_; } while (0)
void f(int T, int n, int m, double **a, double **b) { for (int t = 0; t < T; t++) { for (int i = 1; i < n - 1; i++) { const double *r = a[i]; for (int j = 1; j < m - 1; j++) b[i][j] = r[j - 1] + a[i - 1][j]; } SWAP(double **, a, b); } }
//----
// swapped_parts  sizes: n=9 T=3; shapes: s=18; loops: sequential parallel parallel
void f(int T, int n, double *s) { double *a = s, *b = s + n; for (int t = 0; t < T; t++) { for (int i = 1; i < n - 1; i++) b[i] = a[i - 1] + a[i + 1]; double *tmp = a; a = b; b = tmp; } }
//----
// allocated  sizes: n=9 T=3; loops: parallel sequential parallel parallel parallel parallel
#include <stdlib.h>
void f(int T, int n, double *s) { double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *tmp; for (int i = 0; i < n; i++) a[i] = b[i] = s[i]; for (int t = 0; t < T; t++) { for (int i = 1; i < n - 1; i++) b[i] = a[i - 1] + a[i + 1]; tmp = a; a = b; b = tmp; } for (int i = 0; i < n; i++) s[i] = a[i]; free(a); free(b); }
//----
// part_of_main  sizes: n=9; loops: sequential parallel parallel
void g(int n, double *a, double *b) { double *tmp;
#pragma scop
for (int t = 0; t < 6; t++) { for (int i = 1; i < n - 1; i++) b[i] = a[i - 1] + a[i + 1]; tmp = a; a = b; b = tmp; }
#pragma endscop
 a[0] = b[1]; }
//----
// steps_of_a_function  sizes: n=9 T=5; loops: sequential parallel parallel
static void step(int n, const float *in, float *out) { for (int i = 1; i < n - 1; i++) out[i] = in[i - 1] + in[i + 1]; }
void f(unsigned T, int n, float *a, float *b) { unsigned t; for (t = 0; t < T; t++) { step(n, a, b); float *tmp = a; a = b; b = tmp; } }
//----
// left_early  sizes: n=9 T=9; loops: sequential parallel parallel parallel parallel
void f(int T, int n, float *a, float *b, const int *c, float *o) { for (int t = 0; t < T; t++) { if (c[t] == 2) continue; for (int i = 1; i < n - 1; i++) b[i] = a[i - 1] + a[i + 1]; float *tmp = a; a = b; b = tmp; if (c[t] > 7) break; } for (int i = 0; i < n; i++) o[i] = b[i]; }
