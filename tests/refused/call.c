/* expect:
FILE:9:5: a call of printf is not accepted in a codelet: write its statements instead
      printf("%f", x[i]);
      ^^^^^^^^^^^^^^^^^^
*/
#include <stdio.h>
void f(int n, double *x) {
  for (int i = 0; i < n; i++)
    printf("%f", x[i]);
}
