/* expect:
FILE:6:1: a macro's name is expected after defined
  #if defined(1)
  ^^^^^^^^^^^^^^
*/
#if defined(1)
#endif
void f(int n, int *a) {
  for (int i = 0; i < n; i++) a[i] = 1;
}
