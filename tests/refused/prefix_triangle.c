/* expect:
FILE:8:22: prefix 16: the bounds of loop j depend on i: they must be made of sizes
      #pragma looptune prefix 16
                       ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune prefix 16
    for (int j = 1; j < i; j++)
      A[i][j] += A[i][j - 1];
}
