/* expect:
FILE:9:18: permute: a statement before loop j assigns m, which bounds it
    #pragma hmppcg permute j, i
                   ^^^^^^^^^^^^
  instead: `i, j` is legal, which is the current order
*/
void f(int n, double A[n][n], int last[n]) {
  int m;
  #pragma hmppcg permute j, i
  for (int i = 0; i < n; i++) {
    m = last[i];
    for (int j = 0; j < m; j++) A[i][j] = 1;
  }
}
