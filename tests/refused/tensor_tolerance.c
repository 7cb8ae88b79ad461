/* expect:
FILE:9:31: tensor: the tolerance is a number over 0, at most 0.1, such as 1e-2, got 2
  #pragma looptune tensor bf16, tolerance 2
                                ^^^^^^^^^^^
*/
void f(int n, float A[n][n], float B[n][n], float C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor bf16, tolerance 2
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
