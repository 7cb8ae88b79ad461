/* expect:
FILE:10:7: a comparison of pointers into a and into b is not accepted in a codelet: write indices instead
    if (p < b) a[0] = 1;
        ^^^^^
  --kernel chooses one of its loop nests: f:9, f:11
*/
void f(int n, float *a, float *b) {
  float *p = a + 1;
  for (int i = 0; i < n; i++) p[i] = 1;
  if (p < b) a[0] = 1;
  for (int i = 0; i < n; i++) a[i] += 1;
}
