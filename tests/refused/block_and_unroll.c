/* expect:
FILE:7:18: one loop takes either fullunroll or tile or unroll, once
    #pragma hmppcg tile i:4, j:4
                   ^^^^^^^^^^^^^
*/
void f(int n, double A[n][n]) {
  #pragma hmppcg tile i:4, j:4
  for (int i = 0; i < n; i++)
    #pragma hmppcg unroll 2
    for (int j = 0; j < n; j++) A[i][j] = 1;
}
