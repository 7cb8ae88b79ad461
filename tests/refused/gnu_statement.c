/* expect:
FILE:8:38: ({ … }), which is GNU C, is not accepted in a codelet: write its statements and an expression instead
    for (int i = 0; i < n; i++) x[i] = MAX(x[i], 3);
                                       ^^^
*/
#define MAX(a, b) ({ int _a = (a); int _b = (b); _a > _b ? _a : _b; })
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = MAX(x[i], 3);
}
