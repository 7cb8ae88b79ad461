/* expect:
FILE:7:18: snapshot x: the first extent of x is not declared
    #pragma hmppcg snapshot x
                   ^^^^^^^^^^
*/
void f(int n, double *x, double y[n]) {
  #pragma hmppcg snapshot x
  for (int i = 0; i < n - 1; i++)
    x[i] = x[i + 1] * y[i];
}
