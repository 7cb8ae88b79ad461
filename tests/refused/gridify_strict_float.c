/* expect:
FILE:10:18: gridify i, j is illegal: loop j carries the reduction + of x[i], whose order --no-reassociate preserves
    #pragma hmppcg gridify(i, j)
                   ^^^^^^^^^^^^^
  flow on x: (i=0, j=0) writes x[i] 13:7, (i=0, j=1) reads x[i] 13:7
  instead: `gridify i` is legal
*/
/* with: --no-reassociate */
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg gridify(i, j)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      x[i] += A[i][j];
}
