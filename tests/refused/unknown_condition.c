/* expect:
FILE:10:18: parallel is illegal: loop i carries a dependence: condition A[i] > 0 cannot be analysed, so iterations may depend on each other
    #pragma hmppcg parallel
                   ^^^^^^^^
  output on x: (i=0) writes x[0] 12:19, (i=1) writes x[0] 12:19; assumed, for condition A[i] > 0 12:9
  instead: `argreduce 1024` divides it among threads
  instead: `parallel, assume` asserts it
*/
void f(int n, double A[n], double x[n]) {
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++)
    if (A[i] > 0) x[0] = i;
}
