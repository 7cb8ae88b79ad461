/* expect:
FILE:7:39: a comma expression is not accepted in a codelet: write its parts as statements instead
    for (int i = 0; i < n; i++) x[i] = (i, 2);
                                        ^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = (i, 2);
}
