/* expect:
FILE:8:31: memset of float32 to anything but 0 is not accepted in a codelet: write a loop instead
    for (int i = 0; i < n; i++) memset(x, 1, i * sizeof(float));
                                ^^^^^^^^^^^^^^^^^^^^^^^
*/
#include <string.h>
void f(int n, float *x) {
  for (int i = 0; i < n; i++) memset(x, 1, i * sizeof(float));
}
