/* expect:
FILE:9:26: tensor: the shapes are 16x8x16, 16x8x8, 16x8x4, 8x8x4
  #pragma looptune tensor, shape 8x8x8
                           ^^^^^^^^^^^
*/
void f(int n, double A[n][n], double B[n][n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor, shape 8x8x8
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
