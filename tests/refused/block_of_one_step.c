/* expect:
FILE:7:26: the steps of a block must be at least 2, got 1
    #pragma looptune block 1
                           ^
*/
void f(int n, float A[n][n]) {
  #pragma looptune block 1
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++)
      A[i][k] /= A[k][k];
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++)
        A[i][j] -= A[i][k] * A[k][j];
  }
}
