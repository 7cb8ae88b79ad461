/* expect:
FILE:6:8: complex is not declared: include <complex.h>, or write _Complex
  double complex z;
         ^^^^^^^
*/
double complex z;
void f(int n, double _Complex *x) {
  for (int i = 0; i < n; i++) x[i] = x[i] * 2;
}
