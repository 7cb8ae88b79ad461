/* expect:
FILE:9:26: tensor: block needs rows that are a multiple of 16 and columns that are one of 8, such as 64x64, got 64x60
  #pragma looptune tensor, block 64x60
                           ^^^^^^^^^^^
*/
void f(int n, double A[n][n], double B[n][n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor, block 64x60
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
