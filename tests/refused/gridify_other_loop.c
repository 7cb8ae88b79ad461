/* expect:
FILE:8:18: gridify: no loop k in the nest of loop i
    #pragma hmppcg gridify(i, k)
                   ^^^^^^^^^^^^^
  instead: `gridify i` is legal
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg gridify(i, k)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] += B[j][i];
}
