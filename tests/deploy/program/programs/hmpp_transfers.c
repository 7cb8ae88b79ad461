/* every spelling of transfers */
#include <stdio.h>
#include <stdlib.h>
#define N 50
#pragma hmpp <sim> group, target=CUDA:OPENCL, &
#pragma hmpp <sim>   cond="N > 3"
#pragma hmpp <sim> mapbyname, u, v
#pragma hmpp <sim> mapbyname, size
#pragma hmpp <sim> init codelet, args[u;v].io=out, args[u].size={size}
static void init(int size, float u[size], float v[size]) { int i; for (i = 0; i < size; i++) { u[i] = i % 7; v[i] = 0; } }
#pragma hmpp <sim> fwd codelet, args[v].io=inout, args[w].const=true
static void fwd(int size, float u[size], float v[size], float w[3])
{
  int i;
#pragma hmppcg gridify (i)
  for (i = 1; i < size - 1; i++) v[i] = w[0] * u[i - 1] + w[1] * u[i] + w[2] * u[i + 1];
}
#pragma hmpp <sim> back codelet, args[*].transfer=atcall, args[u].io=inout
static void back(int size, float v[size], float u[size]) { int i; for (i = 0; i < size; i++) u[i] = 0.5f * (u[i] + v[i]); }
#pragma hmpp <sim> total codelet, args[s].io=out
static void total(int size, float u[size], float s[1]) { int i; float t = 0; for (i = 0; i < size; i++) t += u[i]; s[0] = t; }
#pragma hmpp saxpy codelet, args[0-1].io=in, args[y].io=inout, args[x].noupdate=false
void saxpy(int n, float a, float *x, float *y) { int i; for (i = 0; i < n; ++i) y[i] = a * x[i] + y[i]; }
#pragma hmpp unused codelet
void unused(int n, float *x) { int i; for (i = 0; i < n; i++) x[i] = 0; }
int main(int argc, char **argv)
{
  float *u = malloc(N * sizeof(float)), *v = malloc(N * sizeof(float)), w[3] = { .25f, .5f, .25f }, s[1]; int n = N, t;
#pragma hmpp <sim> acquire
#pragma hmpp <sim> allocate, args[init::u;init::v].size={n}
#pragma hmpp <sim> init callsite
  init(n, u, v);
#pragma hmpp <sim> fwd advancedload, args[u;v]
#pragma hmpp <sim> fwd advancedload, args[w], asynchronous
#pragma hmpp <sim> fwd synchronize
  for (t = 0; t < 4; t++)
  {
#pragma hmpp <sim> fwd callsite, args[u;v;w].advancedload=true, &
#pragma hmpp <sim> & asynchronous
    fwd(n, u, v, w);
#pragma hmpp <sim> fwd synchronize
#pragma hmpp <sim> back callsite, args[*].advancedload=true
    back(n, v, u);
    if (t % 2) {
#pragma hmpp <sim> back delegatedstore, args[u]
      printf("%g\n", u[7]);
    }
  }
#pragma hmpp <sim> total callsite, args[u].advancedload=true
  total(n, u, s);
#pragma hmpp <sim> fwd delegatedstore, args[v], args[v].addr="v"
#pragma hmpp <sim> release
  printf("%g %g %g\n", u[3], v[5], s[0]);
  saxpy(n, 2, u, v);
  saxpy(n, s[0], v, u);
#pragma hmpp saxpy advancedload, args[x], args[x].hostdata="u"
#pragma hmpp saxpy callsite, args[x].advancedload=true, args[y].noupdate=false
  saxpy(n, 1, u, v);
  for (t = 0; t < N; t += 9) printf("%g %g\n", u[t], v[t]);
  free(u); free(v);
  return 0;
}
