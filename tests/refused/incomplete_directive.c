/* expect:
FILE:6:1: #ifdef is incomplete
  #ifdef
  ^^^^^^
*/
#ifdef
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
