/* expect:
FILE:7:18: wavefront j, i: tiles are of a perfect nest, in the order of its loops
    #pragma hmppcg wavefront j, i, tile 8, 8
                   ^^^^^^^^^^^^^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg wavefront j, i, tile 8, 8
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
