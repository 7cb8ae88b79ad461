/* expect:
FILE:8:20: prefix 16: loop i has a while loop in it, whose trips are not known
    #pragma looptune prefix 16
                     ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix 16
  for (int i = 0; i < n; i++) {
    double t = x[i];
    while (t > 1)
      t /= 2;
    s += t;
    y[i] = s;
  }
}
