/* expect:
FILE:7:18: expand y: y is also used outside loop j (9:5)
    #pragma hmppcg expand y
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand y
  for (int i = 0; i < n; i++) {
    y[0] = x[i];
    #pragma hmppcg expand y
    for (int j = 0; j < m; j++) {
      y[j] = A[i][j];
      A[i][j] = 2 * y[j];
    }
  }
}
