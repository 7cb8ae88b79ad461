/* expect:
FILE:9:26: tensor: the number of stages must be 2 to 8, got 1
  #pragma looptune tensor, stages 1
                           ^^^^^^^^
*/
void f(int n, double A[n][n], double B[n][n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor, stages 1
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
