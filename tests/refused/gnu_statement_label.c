/* expect:
FILE:8:38: `({ … })` is GNU C: write its statements, and its value as an expression
    for (int i = 0; i < n; i++) x[i] = MAX(x[i], 3);
                                       ^^^
*/
#define MAX(a, b) ({ __label__ out; int _a = (a), _b = (b); if (_a > _b) goto out; _a = _b; out: _a; })
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = MAX(x[i], 3);
}
