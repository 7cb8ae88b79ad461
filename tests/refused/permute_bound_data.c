/* expect:
FILE:8:18: permute: the bounds of loop j depend on loop i in a way that cannot be analysed
    #pragma hmppcg permute j, i
                   ^^^^^^^^^^^^
  instead: `i, j` is legal, which is the current order
*/
void f(int n, double A[n][n], int last[n]) {
  #pragma hmppcg permute j, i
  for (int i = 0; i < n; i++)
    for (int j = 0; j < last[i]; j++) A[i][j] = 1;
}
