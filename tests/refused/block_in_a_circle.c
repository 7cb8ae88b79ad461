/* expect:
FILE:7:20: block 4: all pieces of loop k depend on each other in a circle
    #pragma looptune block 4
                     ^^^^^^^
*/
void f(int n, float A[n][n]) {
  #pragma looptune block 4
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        A[i][j] = A[i][j] < A[i][k] + A[k][j] ? A[i][j] : A[i][k] + A[k][j];
}
