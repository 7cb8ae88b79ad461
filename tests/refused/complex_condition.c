/* expect:
FILE:9:23: a complex expression of this size in a condition is not accepted in a codelet: write a variable for its parts instead
      while (cabs(((((((z * z + 1) * z + 2) * z + 3) * z + 4) * z + 5) * z + 6) * z + x[i]) < 1) x[i] += 1;
                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
#include <complex.h>
void f(int n, double complex *x, double complex z) {
  for (int i = 0; i < n; i++)
    while (cabs(((((((z * z + 1) * z + 2) * z + 3) * z + 4) * z + 5) * z + 6) * z + x[i]) < 1) x[i] += 1;
}
