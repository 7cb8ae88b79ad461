/* expect:
FILE:7:20: block takes the number of steps of a block (syntax: block STEPS)
    #pragma looptune block
                     ^^^^^
*/
void f(int n, float A[n][n]) {
  #pragma looptune block
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++)
      A[i][k] /= A[k][k];
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++)
        A[i][j] -= A[i][k] * A[k][j];
  }
}
