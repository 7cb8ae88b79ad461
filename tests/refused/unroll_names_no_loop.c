/* expect:
FILE:7:18: unroll: no loop k in its nest
    #pragma hmppcg unroll i:2, k:4
                   ^^^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg unroll i:2, k:4
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] += B[j][i];
}
