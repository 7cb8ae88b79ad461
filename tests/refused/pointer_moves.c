/* expect:
FILE:7:32: moving a pointer is not accepted in a codelet: write an index instead
    for (int i = 0; i < n; i++) *x++ = 1;
                                 ^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) *x++ = 1;
}
