/* expect:
FILE:9:18: unroll 4, split is illegal: iteration (i=2) must run before (i=3) when n=9
    #pragma hmppcg unroll 4, split
                   ^^^^^^^^^^^^^^^
  flow on x: (i=2) writes x[i] 10:31, (i=3) reads x[i - 1] 10:38
  instead: `unroll 4` is legal
*/
void f(int n, double x[n]) {
  #pragma hmppcg unroll 4, split
  for (int i = 1; i < n; i++) x[i] = x[i - 1];
}
