/* expect:
FILE:8:22: unroll 100000 of loop j makes 100,000 copies, the limit is 1,024
      #pragma looptune unroll 100000
                       ^^^^^^^^^^^^^
*/
void f(int n, double A[n][n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune unroll 100000
    for (int j = 0; j < n; j++)
      A[i][j] += 1;
}
