/* expect:
FILE:7:38: + of _Float16 and __bf16, which have no common type, is not accepted in a codelet: write a cast of one to float instead
    for (int i = 0; i < n; i++) y[i] = x[i] + y[i];
                                       ^^^^^^^^^^^
*/
void f(int n, __bf16 *x, _Float16 *y) {
  for (int i = 0; i < n; i++) y[i] = x[i] + y[i];
}
