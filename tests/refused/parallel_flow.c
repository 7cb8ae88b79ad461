/* expect:
FILE:8:18: parallel is illegal: loop i carries a dependence: iteration (i=1) must run before (i=2) when n=3
    #pragma hmppcg parallel
                   ^^^^^^^^
  flow on x: (i=1) writes x[i] 9:31, (i=2) reads x[i - 1] 9:38
*/
void f(int n, double x[n]) {
  #pragma hmppcg parallel
  for (int i = 1; i < n; i++) x[i] = x[i - 1];
}
