/* expect:
FILE:8:38: exp of a complex number is not accepted in a codelet: write cexp, or creal of its argument, instead
    for (int i = 0; i < n; i++) x[i] = exp(x[i]);
                                       ^^^^^^^^^
*/
#include <complex.h>
void f(int n, double complex *x) {
  for (int i = 0; i < n; i++) x[i] = exp(x[i]);
}
