/* expect:
FILE:7:18: splitat needs a value (syntax: splitat SUM [, SUM ...])
    #pragma hmppcg splitat
                   ^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg splitat
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
