/* expect:
FILE:7:18: permute k, i: the loops of the nest are i, j
    #pragma hmppcg permute k, i
                   ^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg permute k, i
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] += B[j][i];
}
