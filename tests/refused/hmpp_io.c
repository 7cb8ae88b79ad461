/* expect:
FILE:6:25: io must be in, out or inout, got 'both'
  #pragma hmpp f codelet, args[x].io=both
                          ^^^^^^^^^^^^^^^
*/
#pragma hmpp f codelet, args[x].io=both
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
