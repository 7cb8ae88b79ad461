/* expect:
FILE:7:27: parallel of schedule is one of outer, inner, none
    #pragma hmppcg schedule parallel:all
                            ^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg schedule parallel:all
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
