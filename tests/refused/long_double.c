/* expect:
FILE:6:27: long double (x) is not accepted in a codelet: write float, double or an integer type instead
  void f(int n, long double *x) {
                            ^
*/
void f(int n, long double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
