/* expect:
FILE:9:20: prefix 16 is illegal: it reorders the reduction + of s, whose order --no-reassociate preserves
    #pragma looptune prefix 16
                     ^^^^^^^^^
*/
/* with: --no-reassociate */
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix 16
  for (int i = 0; i < n; i++) {
    s += x[i];
    y[i] = s;
  }
}
