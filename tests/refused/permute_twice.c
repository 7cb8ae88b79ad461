/* expect:
FILE:7:29: permute names loop i twice
    #pragma hmppcg permute i, i
                              ^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg permute i, i
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] += B[j][i];
}
