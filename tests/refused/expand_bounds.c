/* expect:
FILE:8:18: expand t: the values of loop i have no bounds that are sums of sizes
    #pragma hmppcg expand t
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  double t;
  #pragma hmppcg expand t
  for (int i = 0; i < n * m; i++) {
    t = y[0];
    y[0] = t * t;
  }
}
