/* expect:
FILE:7:18: skew needs a loop (syntax: skew LOOP by SUM [, LOOP by SUM ...])
    #pragma hmppcg skew
                   ^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg skew
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
