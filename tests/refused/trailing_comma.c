/* expect:
FILE:6:14: syntax error before ')'
  void f(int n,) {
               ^
*/
void f(int n,) {
  for (int i = 0; i < n; i++) ;
}
