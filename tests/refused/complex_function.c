/* expect:
FILE:8:38: casin is not supported: write its formula
    for (int i = 0; i < n; i++) x[i] = casin(x[i]);
                                       ^^^^^^^^^^^
*/
#include <complex.h>
void f(int n, double complex *x) {
  for (int i = 0; i < n; i++) x[i] = casin(x[i]);
}
