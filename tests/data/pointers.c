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
// walk2  sizes: n=5 m=4; shapes: a=20 b=20; loops: parallel parallel
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
// stride  sizes: n=6; shapes: a=60; loops: parallel
void h(int n, float *a) { float *p = a; for (int i = 0; i < n; i++) { p[0] = p[1] + p[2]; p += 3; } }
//----
// cond  sizes: n=6; shapes: a=60 b=60; loops: sequential
void h(int n, float *a, int *b) { float *p = a; for (int i = 0; i < n; i++) { if (b[i] > 5) *p++ = i; } }
//----
// ifstep  sizes: n=6; shapes: a=60 b=60; loops: parallel
void h(int n, float *a, int *b) { int *p = b; for (int i = 0; i < n; i++) { if (*p++ > 5) a[i] = 1; else a[i] = 3; } }
//----
// cond2  sizes: n=6 c=1; shapes: a=60; loops: sequential
void h(int n, int c, float *a) { float *p = c ? a : a + n; for (int i = 0; i < n; i++) p[i] = 2; }
//----
// scop  sizes: n=6; shapes: a=60 b=60; loops: parallel
void h(int n, float *a, float *b) { float *p; const float *q;
#pragma scop
 p = a; q = b + 2; for (int i = 0; i < n; i++) *p++ = *q++;
#pragma endscop
}
//----
// trip  sizes: n=4; shapes: d=30 s=30; loops: parallel
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
//----
// copy  sizes: n=9; loops: parallel
void f(int n, const float *s, float *d) { int i; for (i = 0; i < n; i++) *d++ = *s++ * 2; }
//----
// end  sizes: n=6; loops: parallel
void h(int n, float *a) { float *p = a, *e = a + n; while (p < e) { *p = *p * 2; p++; } }
//----
// whilecopy  sizes: n=9; loops: parallel
void f(int n, const float *s, float *d) { while (n--) *d++ = *s++ * 2; }
//----
// whilepos  sizes: n=9; loops: parallel
void f(int n, const float *s, float *d) { while (n-- > 0) *d++ = *s++ * 2; d[0] = n; }
//----
// whilezero  sizes: n=0; shapes: s=2 d=3; loops: parallel
void f(int n, const float *s, float *d) { while (n--) *d++ = *s++ * 2; d[0] = n; }
//----
// whilepre  sizes: n=9; loops: parallel
void f(int n, float *d) { while (--n >= 0) d[n] += n; }
//----
// whileunsigned  sizes: n=9; loops: parallel
void f(unsigned n, float *d) { while (n--) d[n] = n; }
//----
// whilesize  sizes: n=9; loops: parallel
#include <stddef.h>
void f(size_t n, unsigned char *d, const unsigned char *s) { while (n--) *d++ ^= *s++; }
//----
// fordown  sizes: n=9; loops: parallel
void f(int n, float *d) { for (int i = n; i-- > 0;) d[i] += i; }
//----
// whilei  sizes: n=9 m=3; loops: parallel parallel
void f(int n, int m, float *d) { int i = 0; while (i < n) { int j = 0; while (j < m) { d[i * m + j] = i + j; j++; } i++; } }
//----
// counters  sizes: n=5 m=4; shapes: a=80; loops: sequential sequential
void f(int n, int m, float *a) { int k = 3; for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) { a[k] = k; k++; } k++; } a[0] = k; }
//----
// counters2  sizes: n=9 m=4; shapes: a=80 b=80; loops: parallel
void f(int n, int m, float *a, float *b) { int k = 0; for (int i = 0; i < n; i += 2) { a[i] = b[k]; k += 2; a[i + 1] = b[k - 1] + 1; } }
//----
// wrap  sizes: n=300 m=4; shapes: a=300; loops: sequential
void f(int n, int m, int *a) { unsigned char k = 250; for (int i = 0; i < n; i++) { a[i] = k; k++; } }
//----
// wrapint  sizes: n=30 m=4; shapes: a=300; loops: parallel
void f(int n, int m, int *a) { unsigned k = 4000000000u; for (int i = 0; i < n; i++) { a[i] = k % 7; k += 100000000u; } }
//----
// negstep  sizes: n=12; shapes: a=40; loops: parallel
void f(int n, int *a) { int k = 30; for (int i = 0; i < n; i++) { a[k] = i; k -= 2; } a[0] = k; }
//----
// triangle  sizes: n=6; shapes: a=40; loops: sequential sequential
void f(int n, double *a) { double *p = a; for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) *p++ = i * 10 + j; }
//----
// both  sizes: n=6; shapes: a=40 b=40; loops: parallel
void f(int n, int *a, int *b) { int k = 0; for (int i = 0; i < n; i++) { if (b[i] > 4) { a[k] = 1; k++; } else { a[k] = 2; k++; } } a[30] = k; }
//----
// pad  sizes: h=4 w=5 p=2; shapes: d=40 s=40; loops: parallel parallel
void f(int h, int w, int p, float *d, const float *s) { for (int y = 0; y < h; y++) { for (int x = 0; x < w; x++) *d++ = *s++; d += p; } }
//----
// pad2  sizes: h=4 w=5 p=7; shapes: d=40 s=40; loops: parallel parallel
void f(int h, int w, int p, float *d, const float *s) { for (int y = 0; y < h; y++) { for (int x = 0; x < w; x++) d[x] = s[x]; d += p; s += p; } }
//----
// empty  sizes: h=4 w=-3 p=7; shapes: d=40 s=40; loops: sequential sequential
void f(int h, int w, int p, float *d, const float *s) { float *q = d; for (int y = 0; y < h; y++) { for (int x = 0; x < w; x++) *q++ = *s++; *q++ = 5; } }
//----
// lastvalue  sizes: n=4; shapes: d=40; loops: parallel parallel
void f(int n, int *d) { int i, k = 0; for (i = 0; i < n; i++) k += 3; d[k] = k; while (k < 20) k += 3; d[k] = k; }
//----
// nested3  sizes: n=3 m=4 l=5; loops: parallel parallel parallel
void f(int n, int m, int l, float *a, const float *b) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) for (int k = 0; k < l; k++) *a++ = *b++; }
//----
// haar  sizes: n=8; shapes: a=40 t=40; loops: parallel parallel
void f(int n, float *a, float *t) { const float *s = a; float *lo = t, *hi = t + n / 2; for (int i = 0; i < n / 2; i++) { float x = *s++, y = *s++; *lo++ = (x + y) * 0.5f; *hi++ = (x - y) * 0.5f; } float *d = a; const float *q = t; for (int i = 0; i < n; i++) *d++ = *q++; }
//----
// wavelet  sizes: n=16; shapes: a=40 t=40; loops: sequential parallel
void f(int n, float *a, float *t) { while (n > 1) { float *s = a; int h = n / 2; for (int i = 0; i < h; i++) { t[i] = s[0] + s[1]; t[h + i] = s[0] - s[1]; s += 2; } for (int i = 0; i < n; i++) a[i] = t[i]; n /= 2; } }
//----
// rgb  sizes: w=5 h=4; shapes: s=60 d=60; loops: parallel parallel
void f(int w, int h, const unsigned char *s, unsigned char *d) { for (int y = 0; y < h; y++) { const unsigned char *p = s + y * w * 3; unsigned char *q = d + y * w; for (int x = 0; x < w; x++, p += 3) *q++ = (p[0] * 77 + p[1] * 150 + p[2] * 29) >> 8; } }
//----
// fir  sizes: n=20 t=5; shapes: x=30 y=30 c=5; loops: parallel reduction
void f(int n, int t, const float *x, const float *c, float *y) { for (int i = 0; i < n; i++) { const float *p = x + i, *q = c; float s = 0; for (int k = 0; k < t; k++) s += *p++ * *q++; *y++ = s; } }
//----
// strcpyrev  sizes: n=7; shapes: d=20 s=20; loops: parallel
void f(int n, char *d, const char *s) { char *e = d + n; while (e > d) *--e = *s++; }
//----
// dotwhile  sizes: n=7; shapes: a=20 b=20 r=1; loops: 
void f(int n, const double *a, const double *b, double *r) { const double *e = a + n; double s = 0; do { s += *a++ * *b++; } while (a != e); *r = s; }
//----
// scopinit  sizes: n=6; shapes: a=60 b=60; loops: parallel
void h(int n, float *a, float *b) { float *p = a + 3; const float *q = b;
#pragma scop
 for (int i = 0; i < n; i++) p[i] = q[i] + b[0];
#pragma endscop
}
//----
// scopinit2  sizes: n=6; shapes: a=60 b=60; loops: parallel
void h(int n, float *a, float *b) { float *p = a + 3; const float *q = b;
#pragma scop
 for (int i = 0; i < n; i++) *p++ = *q++ + b[0];
#pragma endscop
}
//----
// scoprows  sizes: n=6 t=3; shapes: a=60; loops: parallel
void h(int n, int t, double *a) { double *cur = a + t * n, *prev = &a[(t - 1) * n];
#pragma scop
 for (int i = 1; i < n; i++) cur[i] = prev[i - 1] + a[i];
#pragma endscop
}
//----
// scopover  sizes: n=6; shapes: a=60; loops: sequential
void h(int n, double *a) { double *cur = a + 1;
#pragma scop
 for (int i = 0; i < n; i++) cur[i] = a[i] * 2;
#pragma endscop
}
//----
// scoploop  sizes: n=4 t=2; shapes: a=60; loops: parallel
void h(int n, double *a) { for (int t = 0; t < 3; t++) { double *cur = a + t * n;
#pragma scop
 for (int i = 0; i < n; i++) cur[i] = a[i] * 2;
#pragma endscop
 } }
//----
// scopreset  sizes: n=4; shapes: p=60 a=60; loops: parallel
void h(int n, double *a) { double *p = a; for (int t = 0; t < 3; t++) { p = p + n;
#pragma scop
 for (int i = 0; i < n; i++) p[i] = i * 2;
#pragma endscop
 } }
//----
// scopread  sizes: n=6; shapes: a=60; loops: parallel
float h(int n, float *a) { float *p = a + 3;
#pragma scop
 for (int i = 0; i < n; i++) p[i] = p[i] + a[0];
#pragma endscop
 return p[2];
}
//----
// last  sizes: k7=1; loops: sequential sequential
int au;
void a8(int k7) { int xo; for (xo = 0; xo < 2; ++xo) { int dd; for (dd = 0; dd < 2; ++dd) au = !!k7 ? xo : 0; } }
int get(void) { return au; }
//----
// chosen  sizes: n=9 m=4; loops: parallel
void f(int n, int m, float *q, float *k, const float *s) { for (int i = 0; i < n; i++) { float *v = i < m ? q : k; v[i] = v[i] * s[i] + 1; } }
//----
// in_turns  sizes: n=9 T=5; loops: sequential parallel parallel
void f(int n, int T, double *a, double *b) { for (int t = 0; t < T; t++) { double *s, *d; if (t & 1) { s = b; d = a; } else { s = a; d = b; } for (int i = 1; i < n - 1; i++) d[i] = s[i - 1] + s[i + 1]; } }
//----
// chosen_twice  sizes: n=9 c=1; shapes: x=9 a=20 b=20 d=20; loops: sequential sequential sequential sequential sequential sequential sequential sequential sequential
void f(int n, int c, const int *x, int *a, int *b, int *d) { int *p = c == 0 ? a : c == 1 ? b + 1 : d; for (int i = 0; i < n; i++) { int *w; if (x[i] > 3) w = a; else w = p; for (int j = 0; j < 3; j++) { if (x[i] == j) break; w[i] += x[i] + j; c += w[i] & 1; } *w += c; } }
//----
// chosen_instead  sizes: n=9 T=4; loops: sequential parallel parallel
void f(int n, int T, double *x, double *y) { for (int t = 0; t < T; t++) { double *o = y, *in = x; if (t == 2) { in = y; o = x; } for (int i = 0; i < n; i++) o[i] += in[i] * 2; } }
//----
// chosen_of_three  sizes: n=9; shapes: c=9 x=20 y=20 z=20; loops: sequential
void f(int n, const int *c, double *x, double *y, const double *z) { for (int i = 0; i < n; i++) { const double *s; double *d = x; if (c[i] == 0) { s = x; d = y; } else if (c[i] == 1) s = y; else s = z; d[i + 4] = s[i] + s[i + 1]; } }
