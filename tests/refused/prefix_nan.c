/* expect:
FILE:8:20: prefix 16: the order of the values decides what s is if one of them is NaN
    #pragma looptune prefix 16
                     ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix 16
  for (int i = 0; i < n; i++) {
    s = s > x[i] ? s : x[i];
    y[i] = s;
  }
}
