/* expect:
FILE:8:38: offsetof, which is not defined in this program, cannot be called in a codelet: define it in this file or in a header of it, or leave the call out
    for (int i = 0; i < n; i++) x[i] = offsetof(struct pair, b);
                                       ^^^^^^^^^^^^^^^^^^^^^^^^
*/
struct pair { int a, b; };
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = offsetof(struct pair, b);
}
