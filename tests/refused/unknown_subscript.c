/* expect:
FILE:9:18: parallel is illegal: loop i carries a dependence: subscript at[i] of x cannot be analysed, so iterations may depend on each other
    #pragma hmppcg parallel
                   ^^^^^^^^
  output on x: (i=0) writes x[at[i]] 10:31, (i=1) writes x[at[i]] 10:31; assumed, for subscript at[i] of x 10:33
  instead: `parallel, assume` asserts it
*/
void f(int n, double x[n], int at[n]) {
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++) x[at[i]] = i;
}
