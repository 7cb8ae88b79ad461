/* expect:
FILE:8:47: the value of memset is not accepted in a codelet: write the pointer it returns instead
    for (int i = 0; i < n; i++) { y[i] = i; x = memset(x, 0, n * sizeof(float)); }
                                                ^^^^^^^^^^^^^^^^^^^^^^^
*/
#include <string.h>
void f(int n, float *x, float *y) {
  for (int i = 0; i < n; i++) { y[i] = i; x = memset(x, 0, n * sizeof(float)); }
}
