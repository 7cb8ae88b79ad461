/* expect:
FILE:9:18: permute j, i is illegal: the bound last[0] of loop k cannot be analysed, so iterations may depend on each other
    #pragma hmppcg permute j, i
                   ^^^^^^^^^^^^
  flow on A: (i=0, j=1, k=0) writes A[i][j] 12:41, (i=1, j=0, k=0) reads A[j][i] 12:51; assumed, for the bound last[0] of loop k 12:27
  instead: `i, j` is legal, which is the current order
*/
void f(int n, double A[n][n], int last[n]) {
  #pragma hmppcg permute j, i
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < last[0]; k++) A[i][j] = A[j][i] + k;
}
