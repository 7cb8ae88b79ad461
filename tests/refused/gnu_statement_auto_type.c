/* expect:
FILE:8:38: `({ … })` is GNU C: write its statements, and its value as an expression
    for (int i = 0; i < n; i++) x[i] = MAX(x[i], 3);
                                       ^^^
*/
#define MAX(a, b) ({ __auto_type _a = (a); __auto_type _b = (b); _a > _b ? _a : _b; })
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = MAX(x[i], 3);
}
