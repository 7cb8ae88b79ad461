/* expect:
FILE:8:23: SIZE is not declared: give its value with -D SIZE=… (sizes.h was not found: add its folder with -I)
    for (int i = 0; i < SIZE; i++) x[i] = 1;
                        ^^^^
*/
#include "sizes.h"
void f(int n, double *x) {
  for (int i = 0; i < SIZE; i++) x[i] = 1;
}
