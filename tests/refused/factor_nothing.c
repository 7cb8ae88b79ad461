/* expect:
FILE:7:18: factor: no sum in loop j has a loop-invariant factor
    #pragma hmppcg factor
                   ^^^^^^
*/
void f(int n, double A[n], double B[n], double C[n][n]) {
  #pragma hmppcg factor
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++)
      B[i] += C[i][j] * A[j];
}
