/* expect:
FILE:9:33: tensor: tolerance is for tf32 and bf16, which round the factors: tf32x3 is as exact as floats
  #pragma looptune tensor tf32x3, tolerance 1e-3
                                  ^^^^^^^^^^^^^^
*/
void f(int n, float A[n][n], float B[n][n], float C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor tf32x3, tolerance 1e-3
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
