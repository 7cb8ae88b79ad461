/* expect:
FILE:8:39: t is changed and used in one expression, in an order that C leaves open: write two statements
    for (int i = 0; i < n; i++) x[i] = (t = x[i]) * t;
                                        ^^^^^^^^^^^^^
*/
void f(int n, double *x) {
  double t;
  for (int i = 0; i < n; i++) x[i] = (t = x[i]) * t;
}
