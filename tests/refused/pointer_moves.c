/* expect:
FILE:6:47: moving a pointer is not accepted in a codelet: write an index instead
  static double next(const double *x) { return *x++; }
                                                ^
*/
static double next(const double *x) { return *x++; }
void f(int n, double *x, double *y) {
  for (int i = 0; i < n; i++) { double t[2] = {1, next(x)}; y[i] = t[1]; }
}
