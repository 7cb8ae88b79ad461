/* expect:
FILE:8:38: cexp does not take 2 arguments
    for (int i = 0; i < n; i++) x[i] = cexp(x[i], 1);
                                       ^^^^^^^^^^^^^
*/
#include <complex.h>
void f(int n, double complex *x) {
  for (int i = 0; i < n; i++) x[i] = cexp(x[i], 1);
}
