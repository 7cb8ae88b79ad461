/* expect:
FILE:9:5: printf, which is not defined in this program, cannot be called in a codelet: define it in this file or in a header of it, or leave the call out
      printf("%f", x[i]);
      ^^^^^^^^^^^^^^^^^^
*/
#include <stdio.h>
void f(int n, double *x) {
  for (int i = 0; i < n; i++)
    printf("%f", x[i]);
}
