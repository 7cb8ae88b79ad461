/* expect:
FILE:9:18: gridify i, j is illegal: loop i carries a dependence: iteration (i=1, j=0) must run before (i=2, j=0) when n=3
    #pragma hmppcg gridify(i, j)
                   ^^^^^^^^^^^^^
  flow on A: (i=1, j=0) writes A[i][j] 12:7, (i=2, j=0) reads A[i - 1][j] 12:17
  instead: `gridify j` is legal
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg gridify(i, j)
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] = A[i - 1][j];
}
