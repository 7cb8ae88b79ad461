/* expect:
FILE:8:42: a call of erff is not accepted in a codelet: write its formula, or what docs/c.md lists of math.h instead
    for (int i = 0; i < n; i++) x[i] = 1 + erff(x[i]);
                                           ^^^^^^^^^^
*/
#include <math.h>
void f(int n, float *x) {
  for (int i = 0; i < n; i++) x[i] = 1 + erff(x[i]);
}
