/* expect:
FILE:10:18: tile i:1, k:2 is illegal: iterations of loop outer_i would share t; make t an array with an element for each outer_i
    #pragma hmppcg tile i:1, k:2
                   ^^^^^^^^^^^^^
  instead: `tile i:1` is legal
  instead: `tile k:2` is legal
*/
void f(int n, double A[n][n], double z[n]) {
  double t = 1;
  #pragma hmppcg tile i:1, k:2
  for (int i = 0; i < n; i++) {
    t = z[i];
    for (int k = 0; k < n; k++)
      A[i][k] += t;
  }
}
