/* expect:
FILE:6:1: this condition cannot be evaluated: it divides by zero
  #if 1 / (2 - 2)
  ^^^^^^^^^^^^^^^
*/
#if 1 / (2 - 2)
#endif
void f(int n, int *a) {
  for (int i = 0; i < n; i++) a[i] = 1;
}
