/* expect:
FILE:8:18: unroll of i with jam: loop j is bounded by last, under a condition that differs between the copies
    #pragma hmppcg unroll 2, jam
                   ^^^^^^^^^^^^^
  instead: `unroll 2` is legal
*/
void f(int n, double A[n][n], int last[n][n], double x[n]) {
  #pragma hmppcg unroll 2, jam
  for (int i = 0; i < n; i++)
    if (x[i] > 0)
      for (int j = 0; j < last[i][0]; j++) A[i][j] = 1;
}
