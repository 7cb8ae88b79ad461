/* expect:
FILE:7:20: a list without inner braces for rows that are not counted is not accepted in a codelet: write their number instead
    double t[][2] = {1, 2, 3, 4};
                     ^
*/
void f(int n, double *x) {
  double t[][2] = {1, 2, 3, 4};
  for (int i = 0; i < n; i++) x[i] = t[0][1];
}
