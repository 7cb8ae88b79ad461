/* expect:
FILE:6:22: x, of type __bf16, is not accepted in a codelet: write _Float16 or float instead
  void f(int n, __bf16 *x, float *y) {
                       ^
*/
void f(int n, __bf16 *x, float *y) {
  for (int i = 0; i < n; i++) y[i] = x[i];
}
