/* expect:
FILE:8:38: < takes no complex numbers
    for (int i = 0; i < n; i++) y[i] = x[i] < 2;
                                       ^^^^^^^^
*/
#include <complex.h>
void f(int n, double complex *x, int *y) {
  for (int i = 0; i < n; i++) y[i] = x[i] < 2;
}
