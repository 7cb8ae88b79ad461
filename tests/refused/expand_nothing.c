/* expect:
FILE:7:18: expand needs the name of a variable (syntax: expand NAME [, NAME ...])
    #pragma hmppcg expand
                   ^^^^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand
  for (int i = 0; i < n; i++)
    x[i] = 2 * y[0];
}
