/* expect:
FILE:6:20: void x is not accepted in a codelet: write a number type instead
  void f(int n, void *x) {
                     ^
*/
void f(int n, void *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
