/* expect:
FILE:8:20: prefix 16: what loop i accumulates depends on the value of s so far
    #pragma looptune prefix 16
                     ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix 16
  for (int i = 0; i < n; i++) {
    if (s < 10)
      s += x[i];
    y[i] = s;
  }
}
