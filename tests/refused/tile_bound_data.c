/* expect:
FILE:9:18: tile: the bounds of loop j depend on loop i in a way that cannot be analysed
    #pragma hmppcg tile i:4, j:4
                   ^^^^^^^^^^^^^
  instead: `tile i:4` is legal
  instead: `tile j:4` is legal
*/
void f(int n, double A[n][n], int last[n]) {
  #pragma hmppcg tile i:4, j:4
  for (int i = 0; i < n; i++)
    for (int j = 0; j < last[i]; j++) A[i][j] = 1;
}
