/* expect:
FILE:9:22: unroll 1000 of loop j makes 9,000 statements out of 9, the limit is 8,192
      #pragma looptune unroll 1000
                       ^^^^^^^^^^^
  instead: it is legal after `distribute`
*/
void f(int n, double A[n][n]) {
  for (int i = 0; i < n; i++)
    #pragma looptune unroll 1000
    for (int j = 0; j < n; j++) {
      A[i][j] += 1;
      A[i][j] *= 2;
      A[i][j] += 3;
      A[i][j] *= 4;
      A[i][j] += 5;
      A[i][j] *= 6;
      A[i][j] += 7;
      A[i][j] *= 8;
      A[i][j] += 9;
    }
}
