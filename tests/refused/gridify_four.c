/* expect:
FILE:7:18: gridify takes one to three loops, got 4
    #pragma hmppcg gridify(i, j, k, l)
                   ^^^^^^^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg gridify(i, j, k, l)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] += B[j][i];
}
