/* expect:
FILE:8:18: resident of loop k: the value of A[i][k] is from its own iteration of k only in a part of the nest: separate the parts with splitat
  #pragma looptune resident
                   ^^^^^^^^
*/
void f(int n, int A[n][n]) {
  int i, j, k;
#pragma looptune resident
  for (k = 0; k < n; k++)
    for (i = 0; i < n; i++)
      for (j = 0; j < n; j++) A[i][j] = A[i][j] < A[i][k] + A[k][j] ? A[i][j] : A[i][k] + A[k][j];
}
