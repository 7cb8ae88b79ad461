/* expect:
FILE:8:31: a part has 2 to 1,073,741,824 iterations, not 1
    #pragma looptune prefix 16, 1
                                ^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix 16, 1
  for (int i = 0; i < n; i++) {
    s += x[i];
    y[i] = s;
  }
}
