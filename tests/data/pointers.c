// rows  sizes: n=5 m=7; loops: parallel parallel
void f(int n, int m, const float *a, float *b) { for (int i = 0; i < n; i++) { const float *r = &a[i * m]; float *o = b + i * m; for (int j = 0; j < m; j++) o[j] = r[j] * 2; } }
//----
// rows2d  sizes: n=5; loops: parallel parallel
#define M 6
void f(int n, double A[n][M], double B[n][M]) { for (int i = 0; i < n; i++) { double *r = A[i]; double *q = &B[i][1]; for (int j = 0; j < M - 1; j++) q[j] += *(r + j) + *r; } }
//----
// rowptr  sizes: n=5; loops: parallel parallel
#define M 6
void f(int n, double A[][M], double B[n][M]) { for (int i = 0; i < n; i++) { double (*row)[M] = &A[i]; for (int j = 0; j < M; j++) (*row)[j] += B[i][j]; } }
//----
// rowptr2  sizes: n=5; loops: sequential parallel
#define M 6
void f(int n, double A[n + 1][M]) { double (*row)[M] = A + 1; for (int i = 0; i < n; i++) for (int j = 0; j < M; j++) row[i][j] += row[0][j] * 0 + 1; }
//----
// cast2d  sizes: n=5 m=4; loops: parallel parallel
void f(int n, int m, double *a, double *b) { double (*A)[m] = (double (*)[m])a; for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = b[j * n + i]; }
//----
// walk2  sizes: n=5 m=4; shapes: a=20 b=20; loops: sequential sequential
void g(int n, int m, const float *a, float *b) { float *p; const float *q = a;
 for (int i = 0; i < n; i++) { p = b + i * m; for (int j = 0; j < m; j++) { *p++ = *q++; } } }
//----
// reset  sizes: n=6; loops: parallel parallel
void h(int n, float *a, float *b) { float *p; for (p = a; p < a + n; p++) *p = 1; for (p = b; p != b + n; ++p) *p += 2; }
//----
// back  sizes: n=6; loops: parallel
void h(int n, float *a) { for (float *p = a + n - 1; p >= a; p--) *p += 1; }
//----
// diff  sizes: n=6; loops: parallel
void h(int n, int *a) { for (int *p = a; p < a + n; p++) *p = p - a; }
//----
// global  sizes: n=6; loops: parallel
double a[100], b[100], *xx;
void f(void) { xx = &b[50]; for (int i = 0; i < 50; i++) b[i] = xx[i] + a[i]; }
//----
// stride  sizes: n=6; shapes: a=60; loops: sequential
void h(int n, float *a) { float *p = a; for (int i = 0; i < n; i++) { p[0] = p[1] + p[2]; p += 3; } }
//----
// cond  sizes: n=6; shapes: a=60 b=60; loops: sequential
void h(int n, float *a, int *b) { float *p = a; for (int i = 0; i < n; i++) { if (b[i] > 5) *p++ = i; } }
//----
// ifstep  sizes: n=6; shapes: a=60 b=60; loops: sequential
void h(int n, float *a, int *b) { int *p = b; for (int i = 0; i < n; i++) { if (*p++ > 5) a[i] = 1; else a[i] = 3; } }
//----
// cond2  sizes: n=6 c=1; shapes: a=60; loops: sequential
void h(int n, int c, float *a) { float *p = c ? a : a + n; for (int i = 0; i < n; i++) p[i] = 2; }
//----
// scop  sizes: n=6; shapes: a=60 b=60; loops: sequential
void h(int n, float *a, float *b) { float *p; const float *q;
#pragma scop
 p = a; q = b + 2; for (int i = 0; i < n; i++) *p++ = *q++;
#pragma endscop
}
//----
// trip  sizes: n=4; shapes: d=30 s=30; loops: sequential
void h(int n, unsigned char *d, const unsigned char *s) { for (int i = 0; i < n; i++) { d[0] = s[2]; d[1] = s[1]; d[2] = s[0]; d += 3; s += 3; } }
//----
// idx  sizes: n=4; shapes: d=30 s=30; loops: parallel
void h(unsigned n, float *d, const float *s) { for (unsigned i = 1; i < n; i++) { const float *q = s + 2 * i; float *r = d + i; r[0] = q[0] + q[-1] - q[1]; } }
//----
// sizet  sizes: n=4; shapes: d=30 s=30; loops: sequential parallel
#include <stddef.h>
void h(size_t n, float *d, const float *s) { for (size_t i = 1; i < n; i++) { const float *q = s + 2 * i; float *r = d + i; for (size_t k = 0; k < 2; k++) r[k] = q[k] + q[k-1] ; } }
//----
// flat2d  sizes: n=4; loops: parallel
void f(int n, float a[4][8]) { float *p = &a[0][0]; for (int i = 0; i < 32; i++) p[i] = 1;  a[1][1] += 3; }
//----
// flat2dp  sizes: n=4; loops: parallel
void f(int n, float a[4][8]) { float *p = (float *)a; for (int i = 0; i < 32; i++) p[i] += 1;  a[1][1] += 3; }
//----
// flat3  sizes: n=4; loops: parallel
void f(int n, float a[n][4][8]) { float *p = a[0][0]; for (; p < &a[n][0][0]; p++) *p += 1;  a[1][1][0] += 3; }
//----
// flatrow  sizes: n=4; loops: parallel parallel
void f(int n, float a[n][8]) { float *p = a[0]; for (int i = 0; i < n; i++) for (int j = 0; j < 8; j++) p[i * 8 + j] += 2; }
//----
// setsome  sizes: n=4 c=0; shapes: a=9; loops: sequential
void f(int n, int c, float *a) { float *p = a; if (c) p = a + 2; for (int i = 0; i < n; i++) p[i] = 1; }
//----
// setsome1  sizes: n=4 c=1; shapes: a=9; loops: sequential
void f(int n, int c, float *a) { float *p = a; if (c) p = a + 2; for (int i = 0; i < n; i++) p[i] = 1; }
//----
// setloop  sizes: n=4 c=0; shapes: a=9; loops: sequential sequential
void f(int n, int c, float *a) { float *p = a; for (int k = 0; k < c; k++) { p = a + k; *p = 3; } for (int i = 0; i < n; i++) p[i] = 1; }
//----
// setloop1  sizes: n=4 c=2; shapes: a=9 b=9; loops: parallel parallel parallel
void f(int n, int c, float *a, float *b) { float *p = a; for (int k = 0; k < c; k++) { p = b + k; *p = 3; } for (p = a; p < a + 2; p++) *p = 2; p = b;  for (int i = 0; i < n; i++) p[i] = 1; }
