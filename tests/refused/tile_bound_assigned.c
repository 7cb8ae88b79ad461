/* expect:
FILE:10:18: tile: a statement before loop j assigns m, which bounds it
    #pragma hmppcg tile i:4, j:4
                   ^^^^^^^^^^^^^
  instead: `tile i:4` is legal
  instead: `tile j:4` is legal
*/
void f(int n, double A[n][n], int last[n]) {
  int m;
  #pragma hmppcg tile i:4, j:4
  for (int i = 0; i < n; i++) {
    m = last[i];
    for (int j = 0; j < m; j++) A[i][j] = 1;
  }
}
