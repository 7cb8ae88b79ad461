/* expect:
FILE:8:44: a number of bytes that is no multiple of sizeof is not accepted in a codelet: write n * sizeof of float32 instead
    for (int i = 0; i < n; i++) memset(x, 0, i + 4);
                                             ^^^^^
*/
#include <string.h>
void f(int n, float *x) {
  for (int i = 0; i < n; i++) memset(x, 0, i + 4);
}
