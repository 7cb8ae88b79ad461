/* expect:
FILE:7:18: wavefront i, j: tiles need loops from 0 or more whose bounds are sums
    #pragma hmppcg wavefront i, j, tile 8, 8
                   ^^^^^^^^^^^^^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg wavefront i, j, tile 8, 8
  for (int i = m; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
