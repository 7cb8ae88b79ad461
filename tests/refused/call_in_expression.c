/* expect:
FILE:8:42: a call of g is not accepted in a codelet: write its statements, or a function that only returns an expression instead
    for (int i = 0; i < n; i++) x[i] = 1 + g(x[i]);
                                           ^^^^^^^
*/
double g(double);
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1 + g(x[i]);
}
