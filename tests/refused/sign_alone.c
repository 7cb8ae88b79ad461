/* expect:
FILE:7:25: expected a number or a name before '+'
    #pragma hmppcg unroll + 4
                          ^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg unroll + 4
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
