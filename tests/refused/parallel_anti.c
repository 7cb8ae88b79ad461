/* expect:
FILE:9:18: parallel is illegal: loop i carries a dependence: iteration (i=0) must run before (i=1) when n=3
    #pragma hmppcg parallel
                   ^^^^^^^^
  anti on x: (i=0) reads x[i + 1] 10:42, (i=1) writes x[i] 10:35
  instead: it is legal with `snapshot x`
*/
void f(int n, double x[n]) {
  #pragma hmppcg parallel
  for (int i = 0; i < n - 1; i++) x[i] = x[i + 1];
}
