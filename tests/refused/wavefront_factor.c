/* expect:
FILE:7:28: factor of i must be at least 1, got 0
    #pragma hmppcg wavefront i:0, j
                             ^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg wavefront i:0, j
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
