/* expect:
FILE:6:1: /dev/null is a device, not a source file
  #include "/dev/null"
  ^^^^^^^^^^^^^^^^^^^^
*/
#include "/dev/null"
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
