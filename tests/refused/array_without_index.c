/* expect:
FILE:7:38: the array y without an index is not accepted in a codelet: write y[…][…] instead
    for (int i = 0; i < n; i++) x[i] = y;
                                       ^
*/
void f(int n, double x[n], double y[n][n]) {
  for (int i = 0; i < n; i++) x[i] = y;
}
