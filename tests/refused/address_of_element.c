/* expect:
FILE:7:38: taking an address is not accepted in a codelet: write the array's name and an index instead
    for (int i = 0; i < n; i++) x[i] = &y[i] != 0;
                                       ^^^^^
*/
void f(int n, double *x, double *y) {
  for (int i = 0; i < n; i++) x[i] = &y[i] != 0;
}
