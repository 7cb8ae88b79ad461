/* expect:
FILE:9:10: the pointer p points into a and into b: write one pointer for each array
    if (c) p = b;
           ^^^^^
  --kernel chooses one of its loop nests: f:10, f:11
*/
void f(int n, int c, float *a, float *b) {
  float *p = a;
  if (c) p = b;
  for (int i = 0; i < n; i++) p[i] = 1;
  for (int i = 0; i < n; i++) a[i] += 1;
}
