/* expect:
FILE:7:21: the list fills all 4 elements and has 1 more
    double t[2][2] = {1, 2, 3, 4, 5};
                      ^
*/
void f(int n, double *x) {
  double t[2][2] = {1, 2, 3, 4, 5};
  for (int i = 0; i < n; i++) x[i] = t[0][1];
}
