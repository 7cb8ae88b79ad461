/* expect:
FILE:6:1: unterminated #ifdef N
  #ifdef N
  ^^^^^^^^
*/
#ifdef N
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
