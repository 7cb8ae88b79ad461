/* expect:
FILE:6:1: this condition cannot be evaluated: it ends too early
  #if 1 +
  ^^^^^^^
*/
#if 1 +
#endif
void f(int n, int *a) {
  for (int i = 0; i < n; i++) a[i] = 1;
}
