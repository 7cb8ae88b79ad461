/* expect:
FILE:7:39: ({ … }), which is GNU C, is not accepted in a codelet: write its statements and an expression instead
    for (int i = 0; i < n; i++) x[i] = ({ int q = 0; switch (i) { case 2: q = 5; break; default: q = 1; } q; });
                                        ^
*/
void f(int n, int *x) {
  for (int i = 0; i < n; i++) x[i] = ({ int q = 0; switch (i) { case 2: q = 5; break; default: q = 1; } q; });
}
