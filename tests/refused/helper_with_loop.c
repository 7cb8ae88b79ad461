/* expect:
FILE:13:51: total cannot be inlined: write it as one return of an expression, or its statements here
    for (int i = 0; i < n; i++) { double t[2] = {1, total(i, x)}; x[i] = t[1]; }
                                                    ^^^^^^^^^^^
*/
static double total(int n, double *x) {
  double s = 0;
  while (n > 0) s += x[n--];
  return s;
}
void f(int n, double *x) {
#pragma scop
  for (int i = 0; i < n; i++) { double t[2] = {1, total(i, x)}; x[i] = t[1]; }
#pragma endscop
}
