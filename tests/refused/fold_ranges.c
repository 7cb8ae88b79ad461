/* expect:
FILE:7:18: fold: loops i and j must have the same range
    #pragma hmppcg fold
                   ^^^^
*/
void f(int n, int m, double A[n][n], double C[n][n]) {
  #pragma hmppcg fold
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = 0; k < n; k++)
        C[i][j] += A[i][k] * A[j][k];
}
