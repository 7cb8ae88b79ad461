/* expect:
FILE:9:18: parallel is illegal: loop i carries a dependence: subscript i * i of x cannot be analysed, so iterations may depend on each other
    #pragma hmppcg parallel
                   ^^^^^^^^
  output on x: (i=0) writes x[i * i] 10:31, (i=1) writes x[i * i] 10:31; assumed, for subscript i * i of x 10:33
  instead: `parallel, assume` asserts it
*/
void f(int n, int m, double x[n]) {
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++) x[i * i] = i;
}
