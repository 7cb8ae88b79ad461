/* expect:
FILE:7:18: wavefront names 2 loops and 1 sizes of a tile (syntax: wavefront LOOP[:FACTOR], LOOP[:FACTOR] [, ...] [, tile SIZE, SIZE [, ...] [, team[:LAST]]])
    #pragma hmppcg wavefront i, j, tile 8
                   ^^^^^^^^^^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg wavefront i, j, tile 8
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
