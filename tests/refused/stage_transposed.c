/* expect:
FILE:8:31: stage: B is transposed, but not staged
      #pragma looptune stage A, transposed(B)
                                ^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune stage A, transposed(B)
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[j];
}
