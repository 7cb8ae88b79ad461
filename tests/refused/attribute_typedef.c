/* expect:
FILE:7:18: x, of type v4, is not accepted in a codelet: write float, double or an integer type instead
  void f(int n, v4 *x) {
                   ^
*/
typedef float v4 __attribute__((vector_size(16)));
void f(int n, v4 *x) {
  for (int i = 0; i < n; i++) x[i] = x[i] + x[i];
}
