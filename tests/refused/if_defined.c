/* expect:
FILE:6:1: expected a macro name after defined
  #if defined(1)
  ^^^^^^^^^^^^^^
*/
#if defined(1)
#endif
void f(int n, int *a) {
  for (int i = 0; i < n; i++) a[i] = 1;
}
