/* expect:
FILE:7:8: f is a codelet of hmpp, which returns nothing: use a pointer for its value
  double f(int n, double x[n]) {
         ^
*/
#pragma hmpp f codelet, target=CUDA
double f(int n, double x[n]) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i];
  return s;
}
