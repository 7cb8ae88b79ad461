/* expect:
FILE:9:22: rfactor 4 of loop j: it reduces the local t: accumulate in an element of an array
      #pragma looptune rfactor 4
                       ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  for (int i = 0; i < n; i++) {
    double t = 0;
    #pragma looptune rfactor 4
    for (int j = 0; j < n; j++)
      t += A[i][j];
    y[i] = t;
  }
}
