/* expect:
FILE:8:10: the pointer p counts other elements than a has here: write the array and its indices instead
    float (*p)[4] = a;
           ^
  --kernel chooses one of its loop nests: f:9, f:10
*/
void f(int n, float a[n][8]) {
  float (*p)[4] = a;
  for (int i = 0; i < n; i++) p[i][0] = 1;
  for (int i = 0; i < n; i++) a[i][0] += 1;
}
