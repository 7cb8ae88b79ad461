/* expect:
FILE:7:18: wavefront i, j: in tiles, the last factor and the steps of the loops must be 1
    #pragma hmppcg wavefront i, j:2, tile 8, 8
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg wavefront i, j:2, tile 8, 8
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
