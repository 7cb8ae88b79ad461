/* expect:
FILE:9:26: tensor: the strip must be a multiple of 16, got 40
  #pragma looptune tensor, strip 40
                           ^^^^^^^^
*/
void f(int n, double A[n][n], double B[n][n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor, strip 40
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
