/* expect:
FILE:7:39: this pointer expression is not accepted in a codelet: write an array and its indices instead
    for (int i = 0; i < n; i++) x[i] = (i ? x : x + 1)[i];
                                        ^^^^^^^^^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = (i ? x : x + 1)[i];
}
