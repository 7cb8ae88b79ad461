/* expect:
FILE:7:26: block takes the number of steps of a block, got 'steps'
    #pragma looptune block steps 4
                           ^^^^^^^
*/
void f(int n, float A[n][n]) {
  #pragma looptune block steps 4
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++)
      A[i][k] /= A[k][k];
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++)
        A[i][j] -= A[i][k] * A[k][j];
  }
}
