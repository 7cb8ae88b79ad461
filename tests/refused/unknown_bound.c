/* expect:
FILE:10:18: parallel is illegal: loop i carries a dependence: the bound last[i] of loop j cannot be analysed, so iterations may depend on each other
    #pragma hmppcg parallel
                   ^^^^^^^^
  output on x: (i=0, j=0) writes x[j] 12:39, (i=1, j=0) writes x[j] 12:39; assumed, for the bound last[i] of loop j 12:25
  instead: loop 2 (j) is parallel
  instead: `parallel, assume` asserts it
*/
void f(int n, double x[n], int last[n]) {
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++)
    for (int j = 0; j < last[i]; j++) x[j] = i;
}
