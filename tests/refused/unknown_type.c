/* expect:
FILE:6:15: unknown type name 'real'
  void f(int n, real *x) {
                ^^^^
*/
void f(int n, real *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
