/* expect:
FILE:9:18: parallel reduce(+:s) is illegal: loop i carries a dependence: iteration (i=0) must run before (i=1) when n=2
    #pragma hmppcg parallel, reduce(+:s)
                   ^^^^^^^^^^^^^^^^^^^^^
  flow on s: (i=0) writes s[0] 11:5, (i=1) reads s[0] 12:12
  instead: a prefix sum: `prefix 32` divides it among threads
*/
void f(int n, double A[n], double B[n], double *s) {
  #pragma hmppcg parallel, reduce(+:s)
  for (int i = 0; i < n; i++) {
    *s += A[i];
    B[i] = *s;
  }
}
