/* expect:
FILE:10:31: tensor: tf32 takes no value (syntax: tensor [tf32x3 | tf32 | bf16] [, block ROWSxCOLUMNS] [, warp ROWSxCOLUMNS] [, strip NUMBER] [, stages NUMBER] [, shape MxNxK] [, tolerance NUMBER])
        #pragma looptune tensor tf32:3, tolerance 1e-3
                                ^^^^^^
*/
void f(int n, float C[n][n], const float A[n][n], const float B[n][n]) {
#pragma hmppcg gridify(i, j)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      #pragma looptune tensor tf32:3, tolerance 1e-3
      for (int k = 0; k < n; k++)
        C[i][j] += A[i][k] * B[k][j];
}
