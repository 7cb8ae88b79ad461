/* expect:
FILE:7:28: a struct with bit-fields (w) is not accepted in a codelet: write float, double or an integer type instead
  void f(int n, struct flags *w) {
                             ^
*/
struct flags { unsigned low : 3, high : 5; };
void f(int n, struct flags *w) {
  for (int i = 0; i < n; i++) w[i].high = w[i].low;
}
