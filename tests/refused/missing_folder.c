/* expect:
FILE:8:20: x, of type real, is not accepted in a codelet: write float, double or an integer type instead (common/types.h was not found: add its folder with -I)
  void f(int n, real *x) {
                     ^
*/
#include "common/types.h"
#include <polybench.h>
void f(int n, real *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
