/* expect:
FILE:10:18: tile i:4, j:4 is illegal: iteration (i=1, j=4) must run before (i=2, j=3) when n=6
    #pragma hmppcg tile i:4, j:4
                   ^^^^^^^^^^^^^
  flow on A: (i=1, j=4) writes A[i][j] 13:7, (i=2, j=3) reads A[i - 1][j + 1] 13:17
  instead: `tile i:4` is legal
  instead: `tile j:4` is legal
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg tile i:4, j:4
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n - 1; j++)
      A[i][j] = A[i - 1][j + 1];
}
