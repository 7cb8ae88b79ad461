/* expect:
FILE:6:1: #include needs "file" or <file>
  #include sizes.h
  ^^^^^^^^^^^^^^^^
*/
#include sizes.h
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
