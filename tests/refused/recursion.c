/* expect:
FILE:6:49: fact, which calls itself, is not accepted in a codelet: write a loop instead
  static int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
                                                  ^^^^^^^^^^^
*/
static int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = fact(i);
}
