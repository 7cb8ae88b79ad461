/* expect:
FILE:7:23: skew takes LOOP by SUM (syntax: skew LOOP by SUM [, LOOP by SUM ...])
    #pragma hmppcg skew j
                        ^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg skew j
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
