/* expect:
FILE:8:20: prefix 16: what loop i accumulates reads x[i], which the loop has written
    #pragma looptune prefix 16
                     ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix 16
  for (int i = 0; i < n; i++) {
    x[i] = y[i] * y[i];
    s += x[i];
    y[i] = s;
  }
}
