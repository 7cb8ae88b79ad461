/* expect:
FILE:7:38: % needs integers
    for (int i = 0; i < n; i++) x[i] = x[i] % 2;
                                       ^^^^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = x[i] % 2;
}
