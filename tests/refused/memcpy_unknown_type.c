/* expect:
FILE:8:38: memory whose elements have no known type is not accepted in a codelet: write a loop over an array instead
    for (int i = 0; i < n; i++) memcpy(x, y, i * sizeof(float));
                                       ^
*/
#include <string.h>
void f(int n, void *x, void *y) {
  for (int i = 0; i < n; i++) memcpy(x, y, i * sizeof(float));
}
