/* expect:
FILE:9:39: tensor: a block of 64x64 elements is not divided into warps of 48x32
  #pragma looptune tensor, block 64x64, warp 48x32
                                        ^^^^^^^^^^
*/
void f(int n, double A[n][n], double B[n][n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor, block 64x64, warp 48x32
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
