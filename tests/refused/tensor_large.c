/* expect:
FILE:9:26: tensor: block 512x64: a side is at most 256
  #pragma looptune tensor, block 512x64
                           ^^^^^^^^^^^^
*/
void f(int n, double A[n][n], double B[n][n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor, block 512x64
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
