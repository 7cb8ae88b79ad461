/* expect:
FILE:9:25: this initialiser of a complex number is not accepted in a codelet: write one value instead
      double complex z = {1, 2};
                          ^
*/
#include <complex.h>
void f(int n, double complex *x) {
  for (int i = 0; i < n; i++) {
    double complex z = {1, 2};
    x[i] = z;
  }
}
