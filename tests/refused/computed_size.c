/* expect:
FILE:8:12: the size of t depends on what the codelet computes: write a parameter or a constant
    double t[m];
             ^
*/
void f(int n, int *x) {
  int m = x[0];
  double t[m];
  for (int i = 0; i < m; i++) t[i] = 1;
}
