/* expect:
FILE:7:43: schedule has parallel twice
    #pragma hmppcg schedule parallel:outer, parallel:inner
                                            ^^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg schedule parallel:outer, parallel:inner
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
