/* expect:
FILE:7:25: an argument is missing after 'by'
    #pragma hmppcg skew j by
                          ^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg skew j by
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
