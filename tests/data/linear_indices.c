// lda  sizes: n=5 m=4 lda=6; shapes: a=40; loops: parallel parallel
void f(int n, int m, int lda, double *a) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i * lda + j] = 2; }
//----
// padded  sizes: n=5 m=4; shapes: in=40 out=80; loops: parallel parallel
void f(int n, int m, const float *in, float *out) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) out[(i + 1) * (m + 2) + (j + 1)] = in[i * m + j]; }
//----
// nchw  sizes: N=2 C=3 H=4 W=5 K=2; shapes: in=200 out=200 w=100; loops: parallel parallel parallel parallel reduction reduction reduction
void f(int N, int C, int H, int W, int K, const float *in, const float *w, float *out) {
for (int n = 0; n < N; n++) for (int k = 0; k < K; k++) for (int h = 0; h < H - 2; h++) for (int v = 0; v < W - 2; v++) { float s = 0;
 for (int c = 0; c < C; c++) for (int p = 0; p < 3; p++) for (int q = 0; q < 3; q++) s += in[((n * C + c) * H + h + p) * W + v + q] * w[((k * C + c) * 3 + p) * 3 + q];
 out[((n * K + k) * (H - 2) + h) * (W - 2) + v] = s; } }
//----
// stencil  sizes: n=6 m=7; shapes: a=60 b=60; loops: parallel parallel
void f(int n, int m, const double *a, double *b) { for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++) b[i * m + j] = a[(i - 1) * m + j] + a[(i + 1) * m + j] + a[i * m + j - 1] + a[i * m + j + 1] - a[(i-1)*m + j+1]; }
//----
// gs  sizes: n=6 m=7; shapes: a=60; loops: sequential sequential
void f(int n, int m, double *a) { for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++) a[i * m + j] = a[(i - 1) * m + j] + a[(i + 1) * m + j] + a[i * m + j - 1] + a[i * m + j + 1]; }
//----
// dgemm  sizes: m=4 n=5 k=3 lda=6 ldb=7 ldc=8 alpha=1.5 beta=0.5; shapes: A=60 B=60 C=60; loops: parallel parallel reduction
void dgemm(int m, int n, int k, double alpha, const double *A, int lda, const double *B, int ldb, double beta, double *C, int ldc) {
 for (int j = 0; j < n; j++) for (int i = 0; i < m; i++) { double s = 0; for (int l = 0; l < k; l++) s += A[i + l * lda] * B[l + j * ldb]; C[i + j * ldc] = alpha * s + beta * C[i + j * ldc]; } }
//----
// syrk  sizes: n=5 lda=6; shapes: A=60 C=60; loops: parallel parallel reduction
void syrk(int n, int lda, const double *A, double *C) { for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) for (int k = 0; k < n; k++) C[i * lda + j] += A[i * lda + k] * A[j * lda + k]; }
//----
// complex  sizes: n=5 m=4 lda=6; shapes: a=80; loops: parallel parallel
void f(int n, int m, int lda, double *a) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { a[2 * (i * lda + j)] = 1; a[2 * (i * lda + j) + 1] = 2; } }
//----
// inter  sizes: h=5 w=4; shapes: a=80 b=80; loops: parallel parallel parallel
void f(int h, int w, float *a, const float *b) { for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) for (int c = 0; c < 3; c++) a[(y * w + x) * 3 + c] = b[y * w * 3 + x * 3 + 2 - c]; }
//----
// ghost  sizes: nx=4 ny=5 nz=3; shapes: a=250 b=250; loops: parallel parallel parallel
#define IX(i,j,k) ((i) + (nx + 2) * (j) + (nx + 2) * (ny + 2) * (k))
void f(int nx, int ny, int nz, float *a, const float *b) { for (int k = 1; k <= nz; k++) for (int j = 1; j <= ny; j++) for (int i = 1; i <= nx; i++) a[IX(i, j, k)] = b[IX(i - 1, j, k)] + b[IX(i + 1, j, k)] + b[IX(i, j - 1, k)] + b[IX(i, j + 1, k)] + b[IX(i, j, k - 1)]; }
//----
// stam  sizes: N=5; shapes: x=60 x0=60; loops: sequential sequential sequential sequential
#define IX(i,j) ((i)+(N+2)*(j))
void f(int N, float *x, const float *x0) { for (int k = 0; k < 3; k++) { for (int i = 1; i <= N; i++) for (int j = 1; j <= N; j++) x[IX(i,j)] = (x0[IX(i,j)] + x[IX(i-1,j)] + x[IX(i+1,j)] + x[IX(i,j-1)] + x[IX(i,j+1)]) / 4;
 for (int i = 1; i <= N; i++) { x[IX(0, i)] = x[IX(1, i)]; x[IX(N+1, i)] = -x[IX(N, i)]; x[IX(i, 0)] = x[IX(i, 1)]; x[IX(i, N+1)] = x[IX(i, N)]; } x[IX(0,0)] = 0.5f * (x[IX(1,0)] + x[IX(0,1)]); } }
//----
// transpose  sizes: n=5 m=4 lda=6 ldb=7; shapes: a=80 b=80; loops: parallel parallel
void f(int n, int m, int lda, int ldb, const double *a, double *b) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) b[j * ldb + i] = a[i * lda + j]; }
//----
// conv1  sizes: h=6 w=7 kh=3 kw=3; shapes: in=60 k=9 out=60; loops: parallel parallel reduction reduction
void f(int h, int w, int kh, int kw, const float *in, const float *k, float *out) { for (int y = 0; y < h - kh + 1; y++) for (int x = 0; x < w - kw + 1; x++) { float s = 0; for (int p = 0; p < kh; p++) for (int q = 0; q < kw; q++) s += in[(y + p) * w + x + q] * k[p * kw + q]; out[y * (w - kw + 1) + x] = s; } }
//----
// bases  sizes: n=4; shapes: a=80; loops: parallel parallel
void f(int n, double *a) { double *x = a, *y = a + n * n; for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i * n + j] = x[j * n + i]; }
//----
// counted   sizes: n=5 m=4; shapes: a=80; loops: parallel parallel
void f(int n, int m, float *a) { int k = 3; for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) { a[k] = k; k++; } k++; } }
//----
// base  sizes: n=5 m=4 off=7; shapes: a=80; loops: parallel parallel
void f(int n, int m, int off, float *a) { a += off; for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i * m + j] = i + j; }
//----
// base2  sizes: n=5 m=4 off=7; shapes: a=80; loops: parallel parallel
void f(int n, int m, int off, float *a) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[off + i * m + j + 2] += a[off + i * m + j + 2] * 3; }
//----
// blocked  sizes: n=3 b=4 lda=13; shapes: a=200; loops: parallel parallel parallel
void f(int n, int b, int lda, double *a) { for (int bi = 0; bi < n; bi++) { double *t = a + bi * b * lda; for (int i = 0; i < b; i++) for (int j = 0; j < lda; j++) t[i * lda + j] += 1; } }
//----
// image  sizes: w=6 h=5 sw=8 sd=9; shapes: s=80 d=80; loops: parallel parallel
void box(int w, int h, const unsigned char *s, int sw, unsigned char *d, int sd) { for (int y = 1; y < h - 1; y++) { const unsigned char *p = s + (y - 1) * sw, *q = s + y * sw, *r = q + sw; unsigned char *o = d + y * sd; for (int x = 1; x < w - 1; x++) o[x] = (p[x - 1] + p[x] + p[x + 1] + q[x - 1] + q[x] + q[x + 1] + r[x - 1] + r[x] + r[x + 1]) / 9; } }
//----
// sgemv  sizes: m=4 n=5 lda=7; shapes: a=40 x=9 y=9; loops: reduction parallel
void sgemv(int m, int n, const float *a, int lda, const float *x, float *y) { for (int j = 0; j < n; j++) { const float *c = &a[j * lda]; float t = x[j]; for (int i = 0; i < m; i++) y[i] += t * c[i]; } }
//----
// halves  sizes: nb=4 len=6; shapes: x=24; loops: parallel parallel
void f(int nb, int len, double *x) { for (int s = 0; s < nb; s++) for (int k = 0; k < len / 2; k++) { double t = x[s * len + k + len / 2]; x[s * len + k + len / 2] = x[s * len + k] - t; x[s * len + k] += t; } }
//----
// butterflies  sizes: n=16 len=4; shapes: x=16 w=16; loops: parallel parallel
void f(int n, int len, double *x, const double *w) { for (int s = 0; s < n; s += len) for (int k = 0; k < len / 2; k++) { double u = x[s + k], v = x[s + k + len / 2] * w[k * (n / len)]; x[s + k] = u + v; x[s + k + len / 2] = u - v; } }
//----
// halves meet  sizes: nb=4 len=6; shapes: x=32; loops: sequential parallel
void f(int nb, int len, double *x) { for (int s = 0; s < nb; s++) for (int k = 0; k < len / 2; k++) x[s * (len / 2) + k] += x[(s + 1) * (len / 2) + k]; }
