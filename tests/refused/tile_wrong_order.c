/* expect:
FILE:10:18: tile names loop k where the nest has loop j
    #pragma hmppcg tile i:4, k:4, j:4
                   ^^^^^^^^^^^^^^^^^^
  instead: `tile i:4` is legal
  instead: `tile k:4` is legal
  instead: `tile j:4` is legal
*/
void f(int n, double A[n][n][n]) {
  #pragma hmppcg tile i:4, k:4, j:4
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++) A[i][j][k] = 1;
}
