/* expect:
FILE:7:18: wavefront i, l: the loops of the nest are i, j
    #pragma hmppcg wavefront i, l
                   ^^^^^^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg wavefront i, l
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = A[i - 1][j] + A[i][j - 1];
}
