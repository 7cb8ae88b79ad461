/* expect:
FILE:9:18: permute j, i is illegal: subscript at[j] of A cannot be analysed, so iterations may depend on each other
    #pragma hmppcg permute j, i
                   ^^^^^^^^^^^^
  flow on A: (i=0, j=1) writes A[at[i]][at[j]] 11:33, (i=1, j=0) reads A[i][j] 11:51; assumed, for subscript at[j] of A 11:42
  instead: `i, j` is legal, which is the current order
*/
void f(int n, double A[n][n], int at[n]) {
  #pragma hmppcg permute j, i
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) A[at[i]][at[j]] = A[i][j];
}
