/* expect:
FILE:7:40: a call through a pointer is not accepted in a codelet: write the function's name instead
    for (int i = 0; i < n; i++) x[i] = (*g)(1.0);
                                         ^
*/
void f(int n, double *x, double (*g)(double)) {
  for (int i = 0; i < n; i++) x[i] = (*g)(1.0);
}
