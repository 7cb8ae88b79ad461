/* expect:
FILE:7:31: this assignment is not accepted in a codelet: write a variable or an array element on its left instead
    for (int i = 0; i < n; i++) x[i] + 1 = 2;
                                ^^^^^^^^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] + 1 = 2;
}
