/* expect:
FILE:8:18: tile: no loop k stands directly in loop i
    #pragma hmppcg tile i:4, k:4
                   ^^^^^^^^^^^^^
  instead: `tile i:4` is legal
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg tile i:4, k:4
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] += B[j][i];
}
