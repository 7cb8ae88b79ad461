/* expect:
FILE:7:27: schedule has no argument 'fusion'; did you mean 'fuse'? (syntax: schedule [parallel:outer|inner|none] [, fuse:max|min])
    #pragma hmppcg schedule fusion:max
                            ^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg schedule fusion:max
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
