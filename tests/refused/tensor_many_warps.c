/* expect:
FILE:9:41: tensor: a block has 512 warps, the limit is 32
  #pragma looptune tensor, block 256x256, warp 16x8
                                          ^^^^^^^^^
*/
void f(int n, double A[n][n], double B[n][n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor, block 256x256, warp 16x8
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
