/* expect:
FILE:6:1: this condition cannot be evaluated: 1 is not expected there
  #if (int)1
  ^^^^^^^^^^
*/
#if (int)1
#endif
void f(int n, int *a) {
  for (int i = 0; i < n; i++) a[i] = 1;
}
