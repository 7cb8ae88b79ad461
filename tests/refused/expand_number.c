/* expect:
FILE:7:25: expand takes names of variables (syntax: expand NAME [, NAME ...])
    #pragma hmppcg expand x:4
                          ^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand x:4
  for (int i = 0; i < n; i++)
    x[i] = 2 * y[0];
}
