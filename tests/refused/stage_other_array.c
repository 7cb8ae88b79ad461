/* expect:
FILE:8:28: stage: loop j reads no array B; it reads A, x, y
      #pragma looptune stage B
                             ^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune stage B
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[j];
}
