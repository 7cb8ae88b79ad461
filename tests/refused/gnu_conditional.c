/* expect:
FILE:7:43: `a ?: b` is GNU C: write `a ? a : b`
    for (int i = 0; i < n; i++) x[i] = x[i] ?: 3;
                                            ^
*/
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = x[i] ?: 3;
}
