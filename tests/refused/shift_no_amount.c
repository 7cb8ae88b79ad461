/* expect:
FILE:7:24: shift takes LOOP by SUM (syntax: shift LOOP by SUM [, LOOP by SUM ...])
    #pragma hmppcg shift j
                         ^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg shift j
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
