/* expect:
FILE:6:36: long double _Complex (x) is not accepted in a codelet: write float, double or an integer type instead
  void f(int n, long double _Complex *x) {
                                     ^
*/
void f(int n, long double _Complex *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
