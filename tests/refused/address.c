/* expect:
FILE:7:32: this pointer expression is not accepted in a codelet: write an array and its indices instead
    for (int i = 0; i < n; i++) (&x[1])[i] = 1;
                                 ^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) (&x[1])[i] = 1;
}
