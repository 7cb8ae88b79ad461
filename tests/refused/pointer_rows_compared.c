/* expect:
FILE:9:9: a comparison of pointers into two rows is not accepted in a codelet: write indices instead
      if (p > q) p[0] = 1;
          ^^^^^
*/
void f(int n, float a[n][8]) {
  for (int i = 1; i < n; i++) {
    float *p = a[i], *q = a[i - 1];
    if (p > q) p[0] = 1;
  }
}
