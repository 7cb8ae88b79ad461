/* expect:
FILE:7:41: this comment does not end
    for (int i = 0; i < n; i++) x[i] = 1; /* one
                                          ^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1; /* one
}
