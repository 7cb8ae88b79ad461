/* expect:
FILE:11:20: cut is illegal: iteration (i=1) of line 12 must run before (i=2) of line 10 when n=3
      #pragma hmppcg cut
                     ^^^
  flow on B: (i=1) writes B[i] 12:5, (i=2) reads B[i - 1] 10:12
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg distribute
  for (int i = 1; i < n; i++) {
    A[i] = B[i - 1];
    #pragma hmppcg cut
    B[i] = A[i];
  }
}
