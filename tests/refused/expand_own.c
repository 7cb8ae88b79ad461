/* expect:
FILE:7:18: expand h: each iteration of loop j has its own h already
    #pragma hmppcg expand h
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand h
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      double h[2];
      h[0] = A[i][j];
      h[1] = x[i];
      A[i][j] = h[0] * h[1];
    }
}
