/* expect:
FILE:7:20: long double (x) is not accepted in a codelet: write float, double or an integer type instead
  void f(int n, wide x[n]) {
                     ^
*/
typedef long double wide;
void f(int n, wide x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
