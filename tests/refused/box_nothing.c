/* expect:
FILE:8:20: box: loop j has the same bounds in every iteration of the loops around it
      #pragma hmppcg box
                     ^^^
*/
void f(int n, double A[n][n]) {
  for (int i = 0; i < n; i++)
    #pragma hmppcg box
    for (int j = 0; j < n; j++) A[i][j] = 1;
}
