/* expect:
FILE:7:28: expected a number or a name before '+'
    #pragma hmppcg skew j by +i
                             ^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg skew j by +i
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
