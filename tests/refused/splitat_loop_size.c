/* expect:
FILE:7:26: splitat takes values such as k + 1 (syntax: splitat SUM [, SUM ...])
    #pragma hmppcg splitat j:4
                           ^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg splitat j:4
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
