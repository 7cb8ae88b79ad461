/* expect:
FILE:8:18: fuse is illegal: iteration (i=1) of line 9 must run before (i=0) of line 10 when n=2
    #pragma hmppcg fuse
                   ^^^^
  flow on s: (i=1) writes s[0] 9:31, (i=0) reads s[0] 10:38
*/
void f(int n, double A[n], double B[n], double *s) {
  #pragma hmppcg fuse
  for (int i = 0; i < n; i++) *s += A[i];
  for (int i = 0; i < n; i++) B[i] = *s;
}
