/* expect:
FILE:10:18: unroll 2, split, jam is illegal: iteration (i=2, j=0) must run before (i=3, j=0) when n=5
    #pragma hmppcg unroll 2, split, jam
                   ^^^^^^^^^^^^^^^^^^^^
  flow on A: (i=2, j=0) writes A[i][j] 13:7, (i=3, j=0) reads A[i - 1][j] 13:17
  instead: `unroll 2, jam` is legal
  instead: `unroll 2` is legal
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], int k[n]) {
  #pragma hmppcg unroll 2, split, jam
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] = A[i - 1][j];
}
