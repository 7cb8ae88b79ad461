/* expect:
FILE:8:20: prefix needs the iterations of a part (syntax: prefix LENGTH [, LENGTH ...])
    #pragma looptune prefix
                     ^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix
  for (int i = 0; i < n; i++) {
    s += x[i];
    y[i] = s;
  }
}
