/* expect:
FILE:7:15: a scalar's value in braces is not accepted in a codelet: write the value instead
    double a = {1};
                ^
*/
void f(int n, double *x) {
  double a = {1};
  for (int i = 0; i < n; i++) x[i] = a;
}
