/* expect:
FILE:7:28: wavefront takes loop names (syntax: wavefront LOOP[:FACTOR], LOOP[:FACTOR] [, ...] [, tile SIZE, SIZE [, ...] [, team[:LAST]]])
    #pragma hmppcg wavefront 2, j
                             ^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg wavefront 2, j
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
