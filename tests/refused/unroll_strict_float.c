/* expect:
FILE:10:18: unroll 2, split is illegal: it reorders the reduction + of s[0], whose order --no-reassociate preserves
    #pragma hmppcg unroll 2, split
                   ^^^^^^^^^^^^^^^
  flow on s: (i=1) writes s[0] 11:31, (i=2) reads s[0] 11:31
  instead: `unroll 2` is legal
*/
/* with: --no-reassociate */
void f(int n, double A[n], double *s) {
  #pragma hmppcg unroll 2, split
  for (int i = 0; i < n; i++) *s += A[i];
}
