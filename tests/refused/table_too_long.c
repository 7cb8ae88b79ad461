/* expect:
FILE:7:18: the list has 3 values for 2 elements
    double t[2] = {1, 2, 3};
                   ^
*/
void f(int n, double *x) {
  double t[2] = {1, 2, 3};
  for (int i = 0; i < n; i++) x[i] = t[i];
}
