/* expect:
FILE:8:18: expand y is illegal: loop i carries a flow of y: iteration (i=0, j=0) must run before (i=1, j=0) when n=2, m=1
    #pragma hmppcg expand y
                   ^^^^^^^^
  flow on y: (i=0, j=0) writes y[j] 11:7, (i=1, j=0) reads y[j] 11:14
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand y
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      y[j] = y[j] + A[i][j];
}
