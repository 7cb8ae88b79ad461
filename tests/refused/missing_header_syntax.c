/* expect:
FILE:8:41: syntax error before ';' (<polybench.h> was not found: add its folder with -I)
    for (int i = 0; i < n; i++) x[i] = 1 +;
                                          ^
*/
#include <polybench.h>
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1 +;
}
