/* arrays that are copied while the kernels of an asynchronous call run, and memory that these still use */
#include <stdio.h>
#include <stdlib.h>
#pragma hmpp step codelet, args[x].io=inout
static void step(int n, double *x)
{
  for (int i = 0; i < n; i++) x[i] = 0.5 * x[i] + 1;
}
#pragma hmpp join codelet, args[y].io=inout
static void join(int n, const double *x, double *y)
{
  for (int i = 0; i < n; i++) y[i] += 3 * x[i];
}
static double total(int n, const double *x)
{
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * (i % 7 + 1);
  return s;
}
int main(int argc, char **argv)
{
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c);
  for (int i = 0; i < n; i++) a[i] = i % 13, b[i] = i % 11, c[i] = i % 5;
  for (int k = 0; k < 3; k++) {
#pragma hmpp step callsite, asynchronous
    step(n, a);
#pragma hmpp join advancedload, args[x;y]
#pragma hmpp join callsite, args[x;y].advancedload=true
    join(n, c, b);
#pragma hmpp join delegatedstore, args[y]
#pragma hmpp step synchronize
    printf("%.10g %.10g\n", total(n, a), total(n, b));
    for (int i = 0; i < n; i++) c[i] -= a[i] > k;
  }
  /* memory that is given back while the call that uses it runs, and taken for the next array */
#pragma hmpp step callsite, asynchronous
  step(n, a);
#pragma hmpp join release
#pragma hmpp join callsite
  join(n / 2, a + n / 2, b);
#pragma hmpp step synchronize
  printf("%.10g %.10g\n", total(n, a), total(n, b));
  free(a); free(b); free(c);
  return 0;
}
