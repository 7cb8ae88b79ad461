/* expect:
FILE:8:22: rfactor needs one number of parts (syntax: rfactor [LOOP:]PARTS)
      #pragma looptune rfactor
                       ^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune rfactor
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[j];
}
