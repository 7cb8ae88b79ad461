/* expect:
FILE:6:22: x, of type __bf16, is not accepted in a codelet: write float, double or an integer type instead
  void f(int n, __bf16 *x, float *y) {
                       ^
*/
void f(int n, __bf16 *x, float *y) {
  for (int i = 0; i < n; i++) y[i] = x[i];
}
