/* expect:
FILE:8:18: parallel is illegal: loop i carries a dependence: iteration (i=0) must run before (i=1) when n=2
    #pragma hmppcg parallel
                   ^^^^^^^^
  output on x: (i=0) writes x[i / 2] 9:31, (i=1) writes x[i / 2] 9:31
*/
void f(int n, double x[n]) {
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++) x[i / 2] = i;
}
