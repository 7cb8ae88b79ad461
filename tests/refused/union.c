/* expect:
FILE:7:26: a union (w) is not accepted in a codelet: write float, double or an integer type instead
  void f(int n, union word *w) {
                           ^
*/
union word { int i; float f; };
void f(int n, union word *w) {
  for (int i = 0; i < n; i++) w[i].f = w[i].i;
}
