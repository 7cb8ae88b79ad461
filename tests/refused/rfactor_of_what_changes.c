/* expect:
FILE:9:22: rfactor 4 of loop j: x changes in the same iteration of the loops around it: distribute them
      #pragma looptune rfactor 4
                       ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++) {
    x[i] *= 2;
    #pragma looptune rfactor 4
    for (int j = 0; j < n; j++)
      y[i] += A[i][j] * x[i];
  }
}
