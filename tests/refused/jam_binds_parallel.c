/* expect:
FILE:9:18: unroll 2, jam is illegal: loop j, which is to be parallel, would carry a dependence: iteration (i=1, j=1) must run before (i=2, j=2) when n=3
    #pragma hmppcg unroll 2, jam
                   ^^^^^^^^^^^^^
  flow on A: (i=1, j=1) writes A[i][j] 13:7, (i=2, j=2) reads A[i - 1][j - 1] 13:17
  instead: `unroll 2` is legal
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  #pragma hmppcg unroll 2, jam
  for (int i = 1; i < n; i++)
    #pragma hmppcg parallel
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j - 1];
}
