/* expect:
FILE:8:38: a call of offsetof is not accepted in a codelet: write its statements, or a function that only returns an expression instead
    for (int i = 0; i < n; i++) x[i] = offsetof(struct pair, b);
                                       ^^^^^^^^^^^^^^^^^^^^^^^^
*/
struct pair { int a, b; };
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = offsetof(struct pair, b);
}
