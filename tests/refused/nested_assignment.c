/* expect:
FILE:8:39: an assignment inside an expression is not accepted in a codelet: write it as a statement of its own instead
    for (int i = 0; i < n; i++) x[i] = (t = x[i]) * t;
                                        ^^^^^^^^
*/
void f(int n, double *x) {
  double t;
  for (int i = 0; i < n; i++) x[i] = (t = x[i]) * t;
}
