/* expect:
FILE:9:20: prefix 16: s is accumulated by a function and by a comparison
    #pragma looptune prefix 16
                     ^^^^^^^^^
*/
double fmax(double, double);
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix 16
  for (int i = 0; i < n; i++) {
    s = fmax(s, x[i]);
    if (y[i] > s)
      s = y[i];
    y[i] = s;
  }
}
