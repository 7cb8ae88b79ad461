/* expect:
FILE:8:18: unroll of i with jam: the inner loop is guarded by a condition on x, which that loop may change
    #pragma hmppcg unroll 2, jam
                   ^^^^^^^^^^^^^
  instead: `unroll 2` is legal
*/
void f(int n, double A[n][n], double x[n]) {
  #pragma hmppcg unroll 2, jam
  for (int i = 0; i < n; i++)
    if (x[i] > 0)
      for (int j = 0; j < n; j++) x[i] -= A[i][j];
}
