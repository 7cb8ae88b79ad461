/* expect:
FILE:9:18: parallel is illegal: loop i carries the reduction + of s[0], whose order --no-reassociate preserves
    #pragma hmppcg parallel
                   ^^^^^^^^
  flow on s: (i=0) writes s[0] 10:31, (i=1) reads s[0] 10:31
*/
/* with: --no-reassociate */
void f(int n, double A[n], double *s) {
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++) *s += A[i];
}
