/* expect:
FILE:7:38: 99999999999999999999 fits no integer type
    for (int i = 0; i < n; i++) x[i] = 99999999999999999999;
                                       ^^^^^^^^^^^^^^^^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 99999999999999999999;
}
