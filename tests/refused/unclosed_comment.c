/* expect:
FILE:7:41: comments are not supported, see https://github.com/eliben/pycparser#3using.
    for (int i = 0; i < n; i++) x[i] = 1; /* one
                                          ^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1; /* one
}
