/* expect:
FILE:7:1: #error define N
  #error define N
  ^^^^^^^^^^^^^^^
*/
#ifndef N
#error define N
#endif
void f(double *x) {
  for (int i = 0; i < N; i++) x[i] = 1;
}
