/* expect:
FILE:8:27: prefix takes the iterations of a part, got 'i'
    #pragma looptune prefix i:4
                            ^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix i:4
  for (int i = 0; i < n; i++) {
    s += x[i];
    y[i] = s;
  }
}
