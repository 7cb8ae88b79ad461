/* expect:
FILE:8:18: expand t: loop k is not in loop j
    #pragma hmppcg expand t
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  double t;
  #pragma hmppcg expand t
  for (int i = 0; i < n; i++) {
    #pragma hmppcg expand t
    for (int j = 0; j < m; j++) {
      t = A[i][j];
      A[i][j] = t * t;
    }
    #pragma hmppcg expand t
    for (int k = 0; k < m; k++) {
      t = A[i][k];
      A[i][k] = t + t;
    }
  }
}
