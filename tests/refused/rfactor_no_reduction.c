/* expect:
FILE:7:20: rfactor 4: loop i reduces nothing
    #pragma looptune rfactor 4
                     ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  #pragma looptune rfactor 4
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[j];
}
