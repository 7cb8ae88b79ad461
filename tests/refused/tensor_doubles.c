/* expect:
FILE:9:26: tensor: tolerance is for tf32 and bf16, which round the factors: doubles are rounded as in the loop
  #pragma looptune tensor, tolerance 1e-3
                           ^^^^^^^^^^^^^^
*/
void f(int n, double A[n][n], double B[n][n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor, tolerance 1e-3
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
