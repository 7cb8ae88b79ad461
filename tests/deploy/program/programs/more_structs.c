#include <stdio.h>
#include <stdlib.h>
#include <complex.h>
typedef struct { double x, y, z; } vec;
typedef struct { int n; float data[32]; struct { double *w; int m; } in; } box;
typedef struct { short a, b, c; } tri;
#define N 32
#pragma hmpp a codelet
void a(int n, vec *p, double dt) { for (int i = 0; i < n; i++) { p[i].x += dt * p[i].y; p[i].z -= p[i].x; } }
#pragma hmpp b codelet
void b(box *q) { for (int i = 0; i < q->n; i++) q->data[i] = q->data[i] * 2 + i; for (int j = 0; j < q->in.m; j++) q->in.w[j] += j; }
#pragma hmpp c codelet
void c(int n, double complex *z, float complex *w) { for (int i = 0; i < n; i++) { z[i] = z[i] * z[i] + w[i]; w[i] = conjf(w[i]) * (1.0f + 2.0f * I); } }
#pragma hmpp d codelet
void d(int n, tri *t) { for (int i = 0; i < n; i++) { t[i].a += t[i].b; t[i].c = t[i].a * 3; } }
#pragma hmpp e codelet
void e(vec *o, int n, const vec *p) { for (int i = 0; i < n; i++) { o->x += p[i].x; o->y += p[i].y; } }
static box B; static vec V[N]; static double W[N]; static int gn = N; static double gs, gt[2];
#pragma hmpp f codelet
void f(void) { for (int i = 0; i < gn; i++) { W[i] = V[i].x; gs += V[i].y; gt[i & 1] += V[i].z; } }
#pragma hmpp g codelet
void g(double k) { gn = 0; for (int i = 0; i < N; i++) if (V[i].x > k) gn++; }
#pragma hmpp hh codelet
void hh(box q, double *o) { for (int i = 0; i < q.n; i++) o[i] = q.data[i] * q.in.m; }
int main(void)
{
    double complex z[N]; float complex w[N]; tri t[N]; vec o = { 1, 2, 3 }, *po = &o;
    for (int i = 0; i < N; i++) { V[i] = (vec){ i, 2, i % 3 }; z[i] = i + I; w[i] = 1 - i * I; t[i] = (tri){ i, 2, 3 }; B.data[i] = i; W[i] = i; }
    B.n = N; B.in.w = W; B.in.m = 20;
    for (int k = 0; k < 3; k++) { a(N, V, .5); b(&B); c(N, z, w); d(N, t); e(po, N, V); gn = N; f(); g(3); hh(B, W); }
    double s = gs + gt[0] * 2 + gt[1] * 3 + gn + o.x + o.y;
    for (int i = 0; i < N; i++) s += creal(z[i]) / 1e9 + cimag(w[i]) + t[i].a + t[i].c * 2 + V[i].z + B.data[i] + W[i] * i;
    printf("%.14g\n", s);
}
