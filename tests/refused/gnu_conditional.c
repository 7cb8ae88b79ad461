/* expect:
FILE:7:45: `a ?: b`, which is GNU C, of an expression with effects is not accepted in a codelet: write its value as a variable instead
    for (int i = 0; i < n; i++) x[i] = x[i]-- ?: 3;
                                              ^
*/
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = x[i]-- ?: 3;
}
