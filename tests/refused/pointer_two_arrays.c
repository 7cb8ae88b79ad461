/* expect:
FILE:11:17: the pointer p points into a and into b: write one pointer for each array
      if (i == c) p = b;
                  ^^^^^
  --kernel chooses one of its loop nests: f:13
*/
void f(int n, int c, float *a, float *b) {
  float *p = a;
  for (int i = 0; i < n; i++) {
    p[i] = 1;
    if (i == c) p = b;
  }
  for (int i = 0; i < n; i++) a[i] += 1;
}
