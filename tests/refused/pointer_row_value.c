/* expect:
FILE:8:38: a row as a value is not accepted in a codelet: write its elements instead
    for (int i = 0; i < n; i++) b[i] = p[i] + 1;
                                       ^^^^
*/
void f(int n, float a[n][4], float *b) {
  float (*p)[4] = a;
  for (int i = 0; i < n; i++) b[i] = p[i] + 1;
}
