/* expect:
FILE:6:8: a complex number is not supported: write its two parts as numbers instead
  double complex z;
         ^^^^^^^
*/
double complex z;
void f(int n, double _Complex *x) {
  for (int i = 0; i < n; i++) x[i] = x[i] * 2;
}
