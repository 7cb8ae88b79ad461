/* expect:
FILE:7:38: a compound literal is not accepted in a codelet: write a declared array instead
    for (int i = 0; i < n; i++) x[i] = (double[]){1, 2}[0];
                                       ^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = (double[]){1, 2}[0];
}
