/* expect:
FILE:7:38: ~ needs an integer
    for (int i = 0; i < n; i++) x[i] = ~x[i];
                                       ^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = ~x[i];
}
