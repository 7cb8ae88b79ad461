/* expect:
FILE:7:38: long double is not accepted in a codelet: write double instead
    for (int i = 0; i < n; i++) x[i] = 0.1L;
                                       ^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 0.1L;
}
