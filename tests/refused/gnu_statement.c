/* expect:
FILE:8:38: ({ … }), which is GNU C, is not accepted in a codelet: write its statements and an expression instead
    for (int i = 0; i < n; i++) x[i] = CHECKED(x[i], 3);
                                       ^^^^^^^
*/
#define CHECKED(a, b) ({ if (a > b) break; a; })
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = CHECKED(x[i], 3);
}
