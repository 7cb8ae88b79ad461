/* expect:
FILE:8:28: split into 100000 parts: at most 65535
      #pragma looptune split 100000
                             ^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune split 100000
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[j];
}
