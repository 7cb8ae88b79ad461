/* expect:
FILE:7:45: a scalar's value in braces is not accepted in a codelet: write the value instead
    for (int i = 0; i < n; i++) { double t = {2}; x[i] = t; }
                                              ^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) { double t = {2}; x[i] = t; }
}
