/* expect:
FILE:8:31: stage: x has one dimension, no rows to be transposed
      #pragma looptune stage x, transposed(x)
                                ^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune stage x, transposed(x)
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[j];
}
