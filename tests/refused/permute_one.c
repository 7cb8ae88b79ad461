/* expect:
FILE:7:18: permute takes at least two loops (syntax: permute LOOP, LOOP [, LOOP ...])
    #pragma hmppcg permute i
                   ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg permute i
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] += B[j][i];
}
