/* expect:
FILE:9:18: permute j, i is illegal: iteration (i=1, j=1) must run before (i=2, j=0) when n=3
    #pragma hmppcg permute j, i
                   ^^^^^^^^^^^^
  flow on A: (i=1, j=1) writes A[i][j] 12:7, (i=2, j=0) reads A[i - 1][j + 1] 12:17
  instead: `i, j` is legal, which is the current order
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg permute j, i
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n - 1; j++)
      A[i][j] = A[i - 1][j + 1];
}
