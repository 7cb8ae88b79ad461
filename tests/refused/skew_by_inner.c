/* expect:
FILE:7:18: skew i by j: j is neither a loop around loop i nor a size
    #pragma hmppcg skew i by j
                   ^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg skew i by j
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
