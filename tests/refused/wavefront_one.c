/* expect:
FILE:7:18: wavefront takes at least two loops (syntax: wavefront LOOP[:FACTOR], LOOP[:FACTOR] [, ...] [, tile SIZE, SIZE [, ...] [, team[:LAST]]])
    #pragma hmppcg wavefront i
                   ^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg wavefront i
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
