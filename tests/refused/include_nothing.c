/* expect:
FILE:6:1: #include is incomplete
  #include
  ^^^^^^^^
*/
#include
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
