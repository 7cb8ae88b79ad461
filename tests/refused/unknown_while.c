/* expect:
FILE:9:18: parallel is illegal: loop i carries a dependence: the condition x[i] > 1 of a while loop cannot be analysed, so iterations may depend on each other
    #pragma hmppcg parallel
                   ^^^^^^^^
  flow on x: (i=0, pass=0) writes x[0] 11:22, (i=1, pass=0) reads x[0] 11:29; assumed, for the condition x[i] > 1 of a while loop 11:12
  instead: `parallel, assume` asserts it
*/
void f(int n, double x[n], int at[n]) {
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++)
    while (x[i] > 1) x[0] = x[0] / 2;
}
