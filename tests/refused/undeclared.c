/* expect:
FILE:7:38: y is not declared
    for (int i = 0; i < n; i++) x[i] = y;
                                       ^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = y;
}
