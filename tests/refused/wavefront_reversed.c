/* expect:
FILE:8:18: wavefront i, j is illegal: iteration (i=1, j=3) must run before (i=2, j=1) when n=6
    #pragma hmppcg wavefront i, j
                   ^^^^^^^^^^^^^^
  flow on A: (i=1, j=3) writes A[i][j] 11:7, (i=2, j=1) reads A[i - 1][j + 2] 11:17
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg wavefront i, j
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n - 2; j++)
      A[i][j] = A[i - 1][j + 2] + A[i][j - 1];
}
