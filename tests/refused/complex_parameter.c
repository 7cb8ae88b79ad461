/* expect:
FILE:6:31: _Complex double (x) is not accepted in a codelet: write float, double or an integer type instead
  void f(int n, _Complex double *x) {
                                ^
*/
void f(int n, _Complex double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
