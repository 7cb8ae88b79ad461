/* expect:
FILE:8:30: rfactor makes 65535 parts at most, not 100000
      #pragma looptune rfactor 100000
                               ^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune rfactor 100000
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[j];
}
