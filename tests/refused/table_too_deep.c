/* expect:
FILE:7:19: a list for one element is not accepted in a codelet: write one value instead
    double t[2] = {{1, 2}, {3, 4}};
                    ^
*/
void f(int n, double *x) {
  double t[2] = {{1, 2}, {3, 4}};
  for (int i = 0; i < n; i++) x[i] = t[0];
}
