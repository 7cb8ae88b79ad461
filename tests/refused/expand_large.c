/* expect:
FILE:8:18: expand y: the copies have 3,000,000,000 elements, the limit is 2,147,483,647
    #pragma hmppcg expand y
                   ^^^^^^^^
*/
/* with: -D n=100000 -D m=30000 */
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand y
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++)
      y[j] = A[i][j];
    for (int j = 0; j < m; j++)
      A[i][j] = x[i] * y[j];
  }
}
