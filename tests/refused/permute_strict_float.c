/* expect:
FILE:10:18: permute j, i is illegal: it reorders the reduction + of s[0], whose order --no-reassociate preserves
    #pragma hmppcg permute j, i
                   ^^^^^^^^^^^^
  flow on s: (i=0, j=1) writes s[0] 12:33, (i=1, j=0) reads s[0] 12:33
  instead: `i, j` is legal, which is the current order
*/
/* with: --no-reassociate */
void f(int n, double A[n][n], double *s) {
  #pragma hmppcg permute j, i
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) *s += A[i][j];
}
