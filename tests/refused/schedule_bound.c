/* expect:
FILE:7:18: schedule: the iterations of the statement of line 9 are not known: the bound k[i] of loop j cannot be analysed
    #pragma hmppcg schedule
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg schedule
  for (int i = 1; i < n; i++)
    for (int j = 0; j < k[i]; j++) x[i] += A[i][j];
}
