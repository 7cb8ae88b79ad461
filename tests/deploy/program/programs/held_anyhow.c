#include <stdio.h>
#include <stdlib.h>
#define N 64
static double G[N]; static int cnt;
#pragma hmpp inc codelet
void inc(int n, double *x) { for (int i = 0; i < n; i++) x[i] += 1; }
#pragma hmpp cp codelet
void cp(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }
#pragma hmpp sc codelet
void sc(int n, double *x, double *s) { *s = 0; for (int i = 0; i < n; i++) *s += x[i]; }
#pragma hmpp g codelet
void g(int n) { for (int i = 0; i < n; i++) G[i] += i; }
#pragma hmpp h codelet
void h(int n, double *x) { for (int i = 0; i < n; i++) { x[i] += G[i]; cnt++; } }
#pragma hmpp rd codelet
void rd(int n, int *k, double *x) { for (int i = 0; i < n; i++) x[i] += k[0]; k[1] = n; }
static double *gp = G; static double *cur(int k) { return gp + k; }
static int volatile stop;
static void a(double *x, double *y) { double s, *p = x; int k[2] = {1, 0};
  inc(N, x); cp(N, x, y); inc(N, p); 
  sc(N, x, &s); inc((int)s % N, y); 
  inc(N, x); x = y; inc(N, x); inc(N, p);
  rd(N, k, x); inc(k[1] - 3, y); rd(N, k, y);
  g(N); inc(N, G); h(N, x); inc(cnt % N, y);
  inc(N, cur(0)); inc(N, gp); cp(N - 5, gp + 2, y + 1);
  for (int i = 0; i < 3; i++) { inc(N, x); if (i == 1) continue; inc(N, y); if (stop) break; }
  for (int i = 0; i < 4; i++) { inc(N - i, x + i); if (x[2] > 1e9) return; cp(4, x + i, y + 8 * i); }
  for (int i = 0; i < 8; i++) { inc(8, x + 8 * i); cp(8, x + 8 * i, y + 8 * ((i + 1) % 8)); }
  { int i = 0; while (i < 3) { inc(N, x); cp(N, x, y); i++; } do { inc(N, y); inc(N, x); } while (--i); }
  int q = 0; lab: inc(N, x); inc(N, y); if (q++ < 2) goto lab;
  switch (q) { case 3: inc(N, x); cp(N, x, y); break; default: inc(N, y); }
  (void)(q > 1 ? (inc(N, x), 1) : 0); q && (inc(N, y), 1);
  for (inc(N, x); q < 5; inc(N, y), q++) cp(3, y, x);
  if (q) inc(N, x); else inc(N, y);
  if (q) { inc(N, x); inc(N, y); double z = y[3]; printf("%g\n", z); inc(N, y); inc(N, x); }
  { double t[N]; for (int i = 0; i < N; i++) t[i] = i; inc(N, t); cp(N, t, x); inc(N, t); x[0] = t[5]; }
  double (*w)[8] = (double (*)[8])x; inc(8, w[1]); inc(16, w[2]); cp(8, w[1], w[4]); cp(16, w[2], y);
  static double st[N]; inc(N, st); inc(N, st); cp(N, st, y + 0); y[1] += st[1];
  inc(N, &x[0]); inc(N - 1, &x[1]); inc(N, x);
  inc(0, NULL); inc(0, x); inc(N, x); cp(0, NULL, NULL);
}
int main(void) { double *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y); for (int i = 0; i < N; i++) x[i] = i, y[i] = 0;
 a(x, y); a(y, x); double s = 0; for (int i = 0; i < N; i++) s += x[i] * (i + 1) + y[i] * 3 + G[i]; printf("%.17g %d\n", s, cnt); free(x); free(y); }
