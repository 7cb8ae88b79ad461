/* expect:
FILE:7:43: a comma expression is not accepted in a codelet: write its parts as statements instead
    for (int i = 0; i < n; i++) { double t[(i, 2)]; t[0] = 1; x[i] = t[0]; }
                                            ^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) { double t[(i, 2)]; t[0] = 1; x[i] = t[0]; }
}
