/* expect:
FILE:6:24: x, of type __int128, is not accepted in a codelet: write float, double or an integer type instead
  void f(int n, __int128 x[n]) {
                         ^
*/
void f(int n, __int128 x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
