/* expect:
FILE:7:10: a list for t of more than 399 elements is not accepted in a codelet: write a loop that fills it instead
    double t[100000] = {0};
           ^
*/
void f(int n, double *x) {
  double t[100000] = {0};
  for (int i = 0; i < n; i++) x[i] = t[i];
}
