/* expect:
FILE:9:20: factor is illegal: it reorders the reduction + of B[i], whose order --no-reassociate preserves
      #pragma hmppcg factor
                     ^^^^^^
*/
/* with: --no-reassociate */
void f(int n, double A[n], double B[n], double C[n][n]) {
  for (int i = 0; i < n; i++)
    #pragma hmppcg factor
    for (int j = 0; j < n; j++)
      B[i] += A[i] * C[i][j];
}
