/* expect:
FILE:6:31: x, whose type is that of an expression, is not accepted in a codelet: write the name of the type instead
  void c(int n, __typeof__(1.0) *x) { for (int i = 0; i < n; i++) x[i] += 1; }
                                ^
*/
void c(int n, __typeof__(1.0) *x) { for (int i = 0; i < n; i++) x[i] += 1; }
