/* expect:
FILE:8:33: ++ inside an expression is not accepted in a codelet: write it as a statement of its own instead
    for (int i = 0; i < n; i++) x[j++] = i;
                                  ^
*/
void f(int n, double *x) {
  int j = 0;
  for (int i = 0; i < n; i++) x[j++] = i;
}
