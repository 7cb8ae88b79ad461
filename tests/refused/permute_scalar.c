/* expect:
FILE:10:18: permute j, i is illegal: iteration (i=0, j=1) must run before (i=1, j=0) when n=2
    #pragma hmppcg permute j, i
                   ^^^^^^^^^^^^
  flow on t: (i=0, j=1) writes t 13:7, (i=1, j=0) reads t 13:11
  instead: `i, j` is legal, which is the current order
*/
void f(int n, double A[n][n], double x[n]) {
  double t = 0;
  #pragma hmppcg permute j, i
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      t = t / 2 + A[i][j];
      A[i][j] = t;
    }
}
