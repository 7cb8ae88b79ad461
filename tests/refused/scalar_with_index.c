/* expect:
FILE:7:31: x, a scalar, with an index is not accepted in a codelet: write an array parameter instead
    for (int i = 0; i < n; i++) x[i] = 1;
                                ^
*/
void f(int n, double x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
