/* expect:
FILE:9:31: tensor: tf32 and bf16 exclude each other
  #pragma looptune tensor tf32, bf16, tolerance 1e-2
                                ^^^^
*/
void f(int n, float A[n][n], float B[n][n], float C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor tf32, bf16, tolerance 1e-2
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
