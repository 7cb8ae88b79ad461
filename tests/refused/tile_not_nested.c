/* expect:
FILE:10:18: tile: no loop j stands directly in loop i
    #pragma hmppcg tile i:4, j:4
                   ^^^^^^^^^^^^^
  instead: `tile i:4` is legal
  instead: `tile j:4` is legal
  instead: it is legal after `distribute`
*/
void f(int n, double A[n][n], double x[n]) {
  #pragma hmppcg tile i:4, j:4
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < n; k++) x[i] += A[i][k];
    for (int j = 0; j < n; j++) A[i][j] = x[i];
    for (int j = 0; j < n; j++) A[i][j] += 1;
  }
}
