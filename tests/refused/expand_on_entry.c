/* expect:
FILE:7:18: expand y is illegal: y[j] (12:24) may be the value that y has on entry
    #pragma hmppcg expand y
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand y
  for (int i = 0; i < n; i++) {
    for (int j = 1; j < m; j++)
      y[j] = A[i][j];
    for (int j = 0; j < m; j++)
      A[i][j] = x[i] * y[j];
  }
}
