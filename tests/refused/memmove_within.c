/* expect:
FILE:8:31: memmove within an array is not accepted in a codelet: write a loop instead
    for (int i = 0; i < n; i++) memmove(x + 1, x, i * sizeof(float));
                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
#include <string.h>
void f(int n, float *x) {
  for (int i = 0; i < n; i++) memmove(x + 1, x, i * sizeof(float));
}
