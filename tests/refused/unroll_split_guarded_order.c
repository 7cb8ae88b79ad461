/* expect:
FILE:9:18: unroll 2, split, guarded is illegal: iteration (i=2) must run before (i=3) when n=5
    #pragma hmppcg unroll 2, split, guarded
                   ^^^^^^^^^^^^^^^^^^^^^^^^
  flow on x: (i=2) writes x[i] 10:31, (i=3) reads x[i - 1] 10:38
  instead: `unroll 2, guarded` is legal
*/
void f(int n, double x[n]) {
  #pragma hmppcg unroll 2, split, guarded
  for (int i = 1; i < n; i++) x[i] = x[i - 1];
}
