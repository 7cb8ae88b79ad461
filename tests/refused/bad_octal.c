/* expect:
FILE:7:38: syntax error before '08'
    for (int i = 0; i < n; i++) x[i] = 08;
                                       ^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 08;
}
