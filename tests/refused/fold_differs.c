/* expect:
FILE:7:18: fold: iteration (i, j) must add to one element, in a loop, what (j, i) adds to its own, and do nothing else
    #pragma hmppcg fold
                   ^^^^
*/
void f(int n, double A[n][n], double B[n][n], double C[n][n]) {
  #pragma hmppcg fold
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++)
        C[i][j] += A[i][k] * B[j][k];
}
