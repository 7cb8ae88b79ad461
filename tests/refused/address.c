/* expect:
FILE:7:32: taking an address is not accepted in a codelet: write the array's name and its indices instead
    for (int i = 0; i < n; i++) (&x[1])[i] = 1;
                                 ^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) (&x[1])[i] = 1;
}
