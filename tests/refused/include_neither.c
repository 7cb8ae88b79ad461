/* expect:
FILE:6:1: #include is followed by neither "file" nor <file>
  #include sizes.h
  ^^^^^^^^^^^^^^^^
*/
#include sizes.h
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
