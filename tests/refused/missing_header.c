/* expect:
FILE:6:1: sizes.h is not found: add its folder with -I
  #include "sizes.h"
  ^^^^^^^^^^^^^^^^^^
*/
#include "sizes.h"
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
