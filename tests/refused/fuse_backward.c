/* expect:
FILE:8:18: fuse is illegal: iteration (i=1) of line 9 must run before (k=0) of line 10 when n=2
    #pragma hmppcg fuse
                   ^^^^
  flow on B: (i=1) writes B[i] 9:31, (k=0) reads B[n - 1 - k] 10:38
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg fuse
  for (int i = 0; i < n; i++) B[i] = A[i];
  for (int k = 0; k < n; k++) A[k] = B[n - 1 - k];
}
