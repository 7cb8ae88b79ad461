/* expect:
FILE:10:18: tile: loop k is split into parts, and a statement beside it would run in one
    #pragma hmppcg tile i:1, k:1
                   ^^^^^^^^^^^^^
  instead: `tile i:1` is legal
  instead: `tile k:1` is legal
*/
void f(int n, double A[n][n], double z[n]) {
  double t = 1;
  #pragma hmppcg tile i:1, k:1
  for (int i = 0; i < n; i++) {
    t = A[i][0];
    #pragma looptune rfactor 3
    for (int k = 0; k < n; k++)
      t += z[k];
  }
}
