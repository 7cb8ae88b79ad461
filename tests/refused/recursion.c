/* expect:
FILE:6:56: g, which calls itself, is not accepted in a codelet: write a loop instead
  static void g(int n, double *x) { x[n] = 1; if (n > 0) g(n - 1, x); }
                                                         ^^^^^^^^^^^
*/
static void g(int n, double *x) { x[n] = 1; if (n > 0) g(n - 1, x); }
void f(int n, double *x) {
  for (int i = 0; i < n; i++) g(i, x);
}
