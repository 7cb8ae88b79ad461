/* expect:
FILE:10:7: the pointer p as a value is not accepted in a codelet: write the array and an index instead
    if (p) a[0] = 1;
        ^
  --kernel chooses one of its loop nests: f:9, f:11
*/
void f(int n, float *a) {
  float *p = a + 1;
  for (int i = 0; i < n; i++) p[i] = 1;
  if (p) a[0] = 1;
  for (int i = 0; i < n; i++) a[i] += 1;
}
