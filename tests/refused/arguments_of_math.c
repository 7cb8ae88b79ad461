/* expect:
FILE:8:38: pow takes 2 arguments, not 1
    for (int i = 0; i < n; i++) x[i] = pow(x[i]);
                                       ^^^^^^^^^
*/
#include <math.h>
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = pow(x[i]);
}
