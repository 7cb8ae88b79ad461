/* expect:
FILE:8:42: g, which is not defined in this program, cannot be called in a codelet: define it in this file or in a header of it, or leave the call out
    for (int i = 0; i < n; i++) x[i] = 1 + g(x[i]);
                                           ^^^^^^^
*/
double g(double);
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1 + g(x[i]);
}
