/* expect:
FILE:7:30: a product in a directive is a number times a name, such as 2*i
    #pragma hmppcg skew j by i*i
                               ^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg skew j by i*i
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
