/* expect:
FILE:8:19: a return inside a loop is not accepted in a codelet: write an if around what it skips instead
      if (x[i] < 0) return;
                    ^^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) {
    if (x[i] < 0) return;
    x[i] = 1;
  }
}
