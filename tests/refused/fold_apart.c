/* expect:
FILE:8:18: fold: loop i must contain one loop of the same range and nothing else
    #pragma hmppcg fold
                   ^^^^
  instead: it is legal after `distribute`
*/
void f(int n, double A[n][n], double C[n][n]) {
  #pragma hmppcg fold
  for (int i = 0; i < n; i++) {
    C[i][i] = 0;
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++)
        C[i][j] += A[i][k] * A[j][k];
  }
}
