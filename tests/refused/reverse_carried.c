/* expect:
FILE:8:18: reverse is illegal: iteration (i=1, j=1) must run before (i=2, j=1) when n=3
    #pragma hmppcg reverse
                   ^^^^^^^
  flow on A: (i=1, j=1) writes A[i][j] 11:7, (i=2, j=1) reads A[i - 1][j] 11:17
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg reverse
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
