/* expect:
FILE:8:20: rfactor 4 of loop i: loop j inside of it is split as well
    #pragma looptune rfactor 4
                     ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  #pragma looptune parallel
  #pragma looptune rfactor 4
  for (int i = 0; i < n; i++)
    #pragma looptune rfactor 4
    for (int j = 0; j < n; j++)
      y[0] += A[i][j];
}
