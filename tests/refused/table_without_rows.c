/* expect:
FILE:7:21: a list without inner braces is not accepted in a codelet: write one pair of braces for each row instead
    double t[2][2] = {1, 2, 3, 4};
                      ^
*/
void f(int n, double *x) {
  double t[2][2] = {1, 2, 3, 4};
  for (int i = 0; i < n; i++) x[i] = t[0][1];
}
