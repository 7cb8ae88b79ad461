/* expect:
FILE:9:24: rfactor 4 of loop j: between it and parallel loops around only an if on loop variables and sizes may stand
        #pragma looptune rfactor 4
                         ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++)
    if (k[i] > 2)
      #pragma looptune rfactor 4
      for (int j = 0; j < n; j++)
        y[i] += A[i][j];
}
