/* expect:
FILE:8:19: break is not accepted in a codelet: write what ends the loop in its condition instead
      if (x[i] < 0) break;
                    ^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) {
    if (x[i] < 0) break;
    x[i] = 1;
  }
}
