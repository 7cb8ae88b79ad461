/* expect:
FILE:7:18: expand x: the first extent of x is not declared
    #pragma hmppcg expand x
                   ^^^^^^^^
*/
void f(int n, double *x, double y[n]) {
  #pragma hmppcg expand x
  for (int i = 0; i < n; i++) {
    x[0] = y[i];
    y[i] = x[0] * x[0];
  }
}
