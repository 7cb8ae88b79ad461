// dot  sizes: n=9; loops: reduction
#include <complex.h>
double complex dot(int n, const double complex *x, const double complex *y) {
  double complex s = 0;
  for (int i = 0; i < n; i++) s += conj(x[i]) * y[i];
  return s;
}
//----
// mandel  sizes: w=7 h=5 most=30; loops: parallel parallel
#include <complex.h>
void mandel(int w, int h, int most, int out[h][w]) {
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      double complex c = (-2.0 + 3.0 * x / w) + (-1.0 + 2.0 * y / h) * I, z = 0;
      int k = 0;
      while (k < most && cabs(z) < 2) { z = z * z + c; k++; }
      out[y][x] = k;
    }
}
//----
// dft  sizes: n=8; loops: parallel reduction
#include <complex.h>
#include <math.h>
void dft(int n, const double complex *x, double complex *X) {
  for (int k = 0; k < n; k++) {
    X[k] = 0;
    for (int j = 0; j < n; j++) X[k] += x[j] * cexp(-2 * M_PI * I * j * k / n);
  }
}
//----
// alias  sizes: n=8; loops: sequential
#include <complex.h>
void f(int n, double complex *a, double complex z) { for (int i = 0; i < n; i++) { a[i] = a[i] * a[n - 1 - i] / (z + 3 + a[0]); z *= z; z += creal(z); z /= 1.5 + I; a[i] *= z; a[i] /= 2; a[i] -= 1; } }
//----
// ops  sizes: n=8 k=3; loops: parallel
#include <complex.h>
void f(int n, int k, double *r, float complex *a, double complex *b, _Bool *t) {
  for (int i = 0; i < n; i++) {
    t[i] = a[i] == b[i] || a[i];
    r[i] = a[i] * b[i];
    r[i] += k * a[i];
    r[i] /= a[i];
    a[i] = k / a[i] + 2 * I + ~b[i];
    b[i] = i % 2 ? -a[i] : (b[i] != 0 ? k : I * k / 2);
    if (!a[i]) b[i]++;
    __real__ a[i] = __imag__ b[i] - 1;
    __imag__ b[i] += 3;
    a[i] = (float complex)(b[i] * 3);
    b[i] = CMPLX(r[i], 2) * (double complex)a[i];
    r[i] += (int)b[i] + cabs(a[i]) + cargf(a[i]) + creal(a[i]) / 3 + cimag(1.0f / a[i]);
  }
}
//----
// funcs  sizes: n=9; loops: parallel
#include <complex.h>
void f(int n, const double complex *a, double complex *b, float complex *c) {
  for (int i = 0; i < n; i++) {
    b[i] = cexp(a[i]) + clog(a[i]) + csqrt(a[i] - 0.5) * cpow(a[i], 1.5 + I) + csin(a[i]) * ccos(a[i]) - ctan(a[i]);
    b[i] += csinh(a[i]) + ccosh(a[i]) / ctanh(a[i]) + conj(csqrt(-a[i]));
    c[i] = cexpf(a[i]) + clogf(a[i]) + csqrtf(-a[i] + 0.3f * I);
  }
}
//----
// types  sizes: n=9; shapes: s_data=9x2 p_id=9 p_z_re=9 p_z_im=9 p_w0_re=9 p_w0_im=9 p_w1_re=9 p_w1_im=9; loops: parallel
#include <complex.h>
typedef float complex cf;
struct rec { int id; double complex z; cf w0, w1; };
struct st { int m; cf *data; double complex k; };
static inline double complex rot(double complex z, double t) { return z * cexp(I * t); }
static double norm2(cf z) { return crealf(z * conjf(z)); }
void f(int n, struct rec *p, struct st *s, cf q[3]) {
  cf loc[2] = {1, 2 + I};
  for (int i = 0; i < n; i++) {
    p[i].z = rot(p[i].z, 0.1 * i) * s->k + loc[i % 2];
    p[i].w1 += p[i].z * q[i % 3];
    s->data[i] = norm2(p[i].w0) + p[i].id;
  }
}
//----
// loops  sizes: n=9; shapes: a=9x2; loops: sequential
#include <complex.h>
double complex f(int n, const double complex *a) {
  double complex w = 1, s = 0;
  const double complex *p = a;
  for (int k = 0; k < n; k++, w *= 0.5 + 0.1 * I) { if (k == 3) continue; s += w * *p++; if (cabs(s) > 4) break; }
  return s / n;
}
//----
// globals  sizes: N=5; loops: parallel reduction
#include <complex.h>
#define N 5
double complex A[N][N], x[N], y[N], beta;
const double complex W[2] = {1, I}, K = 2 - I;
void f(void) { for (int i = 0; i < N; i++) { y[i] *= beta; for (int j = 0; j < N; j++) y[i] += A[i][j] * x[j] * W[j % 2] * K; } }
//----
// castp  sizes: n=6; shapes: x=6x2; loops: parallel parallel
#include <complex.h>
void f(int n, double complex *x) { double *p = (double *)x; for (int i = 0; i < n; i++) { p[2 * i] += 1; p[2 * i + 1] *= 2; } for (int i = 0; i < n; i++) x[i] *= I; }
//----
// memset  sizes: n=6; loops: parallel parallel parallel
#include <complex.h>
#include <string.h>
void f(int n, double complex *x, double complex *y) { memset(x, 0, n * sizeof(double complex)); for (int i = 0; i < n; i++) x[i] += 1 + I; memcpy(y, x, n * sizeof *x); }
//----
// rows  sizes: n=6; loops: parallel parallel
#include <complex.h>
void f(int n, double complex **x) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) x[i][j] *= I; }
//----
// swap  sizes: n=6 t=3; loops: sequential parallel parallel
#include <complex.h>
void f(int n, int t, double complex *x, double complex *y) { for (int k = 0; k < t; k++) { for (int i = 1; i < n - 1; i++) y[i] = 0.5 * (x[i - 1] + x[i + 1]) - I * x[i]; double complex *s = x; x = y; y = s; } }
//----
// fns  sizes: n=6; loops: parallel
#include <complex.h>
double complex h(double x) { return x + I; }
double g(double x) { return cabs(x + I); }
double m(double complex z) { double a = creal(z), b = cimag(z); return a * a + b * b; }
void f(int n, double complex *x, double *y) { for (int i = 0; i < n; i++) { x[i] *= h(y[i]); y[i] = g(y[i]) + m(x[i]) + m(y[i]) + g(x[i]); } }
//----
// noheader  sizes: n=6 I=3; loops: parallel
void f(int n, double _Complex *x, __complex__ float *y, int I) { for (int i = 0; i < n; i++) { __real__ x[i] += I; y[i] = x[i] * (__imag__ x[i]); } }
//----
// early  sizes: n=6; loops: parallel sequential
#include <complex.h>
static double complex horner(int n, const double complex *c, double complex z) { double complex r = c[n]; for (int k = n - 1; k >= 0; k--) { r = r * z + c[k]; if (cabs(r) > 1e3) return r; } return r; }
void f(int n, const double complex *c, double complex *x) { for (int i = 0; i < n; i++) x[i] = horner(n - 1, c, x[i]); }
//----
// newton  sizes: n=6; loops: parallel
#include <complex.h>
void f(int n, double complex *x, int *steps) { for (int i = 0; i < n; i++) { double complex z = x[i] + 0.1 * I; int k = 0; do { double complex d = (z * z * z - 1) / (3 * z * z); z -= d; k++; if (creal(d * conj(d)) < 1e-12) break; } while (k < 50); x[i] = z; steps[i] = k; } }
//----
// ptrargs  sizes: n=6; loops: parallel
#include <complex.h>
static void axpy(double complex *y, const double complex *x, double complex a) { *y += a * *x; }
static void both(double complex *s, double complex z) { *s = *s * z + 1; }
void f(int n, double complex *y, const double complex *x) { for (int i = 0; i < n; i++) { double complex t = 1; axpy(&y[i], &x[i], 2 + I); both(&t, y[i]); both(&t, x[i]); y[i] = t; } }
//----
// mixed  sizes: n=7; loops: parallel
#include <complex.h>
void f(int n, const float *a, const int *k, const long *l, const float complex *z, double complex *o, float complex *q) { for (int i = 0; i < n; i++) { o[i] = a[i] * z[i] + k[i] * z[i] - l[i] / z[i] + (z[i] - k[i]) / (2 + k[i] * k[i]); q[i] = o[i] * a[i] + 1 / (z[i] * I) + a[i] * I * k[i] / (I + 3) - (k[i] * I) / 4; } }
//----
// cond  sizes: n=7; loops: sequential
#include <complex.h>
void f(int n, double complex *z) { for (int i = 0; i < n; i++) { if (i > 0 && z[i - 1] * z[i] != 0) z[i] += z[i - 1] / z[i]; z[i] = i > 1 ? z[i - 2] * z[i - 1] * z[i] : creal(z[i]); } }
//----
// imaginary  sizes: n=6; loops: parallel
void f(int n, double _Complex *x, float _Complex *y) { for (int i = 0; i < n; i++) { x[i] += 2.0i * x[i] - 1.0i / 3; y[i] *= 1.5fi + 2.if + 3 - x[i] * 1e-1j; if(i>3)x[i]=0; } }
//----
// zgemm_lda  sizes: m=4 n=3 k=5 lda=4 ldb=5 ldc=4 alpha_re=0.5 alpha_im=1.5 beta_re=0.3 beta_im=-1.0; loops: parallel parallel reduction
#include <complex.h>
typedef double complex zc;
void zgemm(int m, int n, int k, zc alpha, const zc *A, int lda, const zc *B, int ldb, zc beta, zc *C, int ldc) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) {
      zc t = 0.0;
      for (int l = 0; l < k; l++) t += A[i + l * lda] * B[l + j * ldb];
      if (beta == 0.0) C[i + j * ldc] = alpha * t; else C[i + j * ldc] = alpha * t + beta * C[i + j * ldc];
    }
}
//----
// fftrec  sizes: n=16; shapes: a=16x2; loops: sequential sequential sequential
#include <complex.h>
#include <math.h>
void fft(int n, double complex *a) {
  for (int i = 1, j = 0; i < n; i++) { int bit = n >> 1; for (; j & bit; bit >>= 1) j ^= bit; j ^= bit; if (i < j) { double complex t = a[i]; a[i] = a[j]; a[j] = t; } }
  for (int len = 2; len <= n; len *= 2) {
    double ang = 2 * M_PI / len;
    double complex wlen = cos(ang) + sin(ang) * I;
    for (int i = 0; i < n; i += len) {
      double complex w = 1;
      for (int j = 0; j < len / 2; j++) { double complex u = a[i + j], v = a[i + j + len / 2] * w; a[i + j] = u + v; a[i + j + len / 2] = u - v; w *= wlen; }
    }
  }
}
//----
// spinor  sizes: n=6; loops: parallel parallel reduction
#include <complex.h>
typedef struct { double complex c[3]; } su3_vec;
typedef struct { double complex e[3][3]; } su3_mat;
static inline su3_vec mul(const su3_mat *u, su3_vec v) { su3_vec r; for (int i = 0; i < 3; i++) { r.c[i] = 0; for (int j = 0; j < 3; j++) r.c[i] += u->e[i][j] * v.c[j]; } return r; }
void f(int n, const su3_mat *u, const su3_vec *v, su3_vec *o) { for (int i = 0; i < n; i++) o[i] = mul(&u[i], v[i]); }
//----
// lu  sizes: n=5; loops: sequential parallel parallel
#include <complex.h>
void lu(int n, double complex A[n][n]) { for (int k = 0; k < n; k++) { for (int i = k + 1; i < n; i++) { A[i][k] /= A[k][k]; for (int j = k + 1; j < n; j++) A[i][j] -= A[i][k] * A[k][j]; } } }
//----
// switchc  sizes: n=6; loops: parallel
#include <complex.h>
void f(int n, const int *k, double complex *x) { for (int i = 0; i < n; i++) switch (k[i] & 3) { case 0: x[i] *= I; break; case 1: x[i] = -x[i]; break; default: x[i] /= I; } }
//----
// parts  sizes: n=6; loops: parallel parallel
#include <complex.h>
void f(int n, double complex *x, float complex *w) { for (int i = 0; i < n; i++) { double complex z = x[i]; ((double *)&z)[0] += 1; ((double *)&x[i])[1] = ((double *)&z)[1] + ((float *)&w[i])[0]; x[i] += z; for (int k = 0; k < 2; k++) ((float *)&w[i])[k] *= 2; } }
//----
// numbers  sizes: n=6 dt=0.5; loops: parallel parallel
typedef struct { float pos[3], vel[3]; } part;
void f(int n, part *p, float dt) { for (int i = 0; i < n; i++) for (int d = 0; d < 3; d++) ((float *)&p[i])[d] += dt * ((float *)&p[i])[3 + d]; }
//----
// conversions  sizes: n=6; loops: parallel
#include <complex.h>
#include <stdbool.h>
void f(int n, double complex *x, bool *b, int *k, unsigned char *u) {
  double complex w[2][2] = {{1, -I}, {I, 2}};
  for (int i = 0; i < n; i++) {
    b[i] = x[i];
    bool c = x[i] && !b[i];
    k[i] = c ? x[i] * 10 : x[i] * w[i & 1][0] * 5;
    u[i] += x[i] * 3;
    k[i] -= x[i] + sizeof(x[i]) + sizeof(float complex);
    x[i] = cpow(x[i], 2) + cpow(0 * x[i], 0.5 + I);
  }
}
