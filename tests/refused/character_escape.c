/* expect:
FILE:7:38: \q is not an escape sequence of C
    for (int i = 0; i < n; i++) x[i] = '\q';
                                       ^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = '\q';
}
