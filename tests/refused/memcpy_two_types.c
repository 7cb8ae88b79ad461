/* expect:
FILE:8:31: memcpy between arrays of two types is not accepted in a codelet: write a loop instead
    for (int i = 0; i < n; i++) memcpy(x, y, i * sizeof(float));
                                ^^^^^^^^^^^^^^^^^^^^^^^
*/
#include <string.h>
void f(int n, float *x, int *y) {
  for (int i = 0; i < n; i++) memcpy(x, y, i * sizeof(float));
}
