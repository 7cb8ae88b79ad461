/* expect:
FILE:17:18: expand y is illegal: loop i and loop j carry a flow of y: iteration (i=0, j=1) must run before (i=0, j=2) when n=1, m=3
    #pragma hmppcg expand y
                   ^^^^^^^^
  flow on y: (i=0, j=1) writes y[j] 21:7, (i=0, j=2) reads y[j - 1] 22:21
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  double t;
  #pragma hmppcg expand t
  for (int i = 0; i < n; i++) {
    t = x[i];
    for (int j = 0; j < m; j++) {
      A[i][j] = t;
      t = A[i][j] * y[j];
    }
  }
  #pragma hmppcg expand y
  for (int i = 0; i < n; i++) {
    #pragma hmppcg expand y
    for (int j = 1; j < m; j++) {
      y[j] = A[i][j];
      y[0] = y[j] * y[j - 1];
    }
  }
}
