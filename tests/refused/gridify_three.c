/* expect:
FILE:7:18: gridify takes one or two loops, got 3
    #pragma hmppcg gridify(i, j, k)
                   ^^^^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg gridify(i, j, k)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] += B[j][i];
}
