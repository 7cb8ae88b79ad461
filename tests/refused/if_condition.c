/* expect:
FILE:6:1: this condition cannot be evaluated: 1.5 is not an integer
  #if 1.5 > 1
  ^^^^^^^^^^^
*/
#if 1.5 > 1
#endif
void f(int n, int *a) {
  for (int i = 0; i < n; i++) a[i] = 1;
}
