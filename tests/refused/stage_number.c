/* expect:
FILE:8:28: stage takes names of arrays (syntax: stage ARRAY [, ARRAY ...] [, buffers N] [, transposed(ARRAY, ...)] [, unroll N])
      #pragma looptune stage 4
                             ^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune stage 4
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[j];
}
