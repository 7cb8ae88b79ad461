/* expect:
FILE:8:42: sqrtl, which computes in long double, is not accepted in a codelet: write sqrt instead
    for (int i = 0; i < n; i++) x[i] = 1 + sqrtl(x[i]);
                                           ^^^^^^^^^^^
*/
#include <math.h>
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1 + sqrtl(x[i]);
}
