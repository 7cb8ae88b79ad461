/* expect:
FILE:7:18: splitat: l is neither a loop around loop i nor a size
    #pragma hmppcg splitat l + 1
                   ^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg splitat l + 1
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
