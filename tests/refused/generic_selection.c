/* expect:
FILE:7:38: this expression is not accepted in a codelet: write plain arithmetic instead
    for (int i = 0; i < n; i++) x[i] = _Generic(n, int: 1);
                                       ^^^^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = _Generic(n, int: 1);
}
