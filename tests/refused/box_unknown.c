/* expect:
FILE:8:20: box: how far loop j goes in all iterations of the loops around is not known
      #pragma hmppcg box
                     ^^^
*/
void f(int n, double A[n][n]) {
  for (int i = 0; i < n; i++)
    #pragma hmppcg box
    for (int j = 0; j < i % 7; j++) A[i][j] = 1;
}
