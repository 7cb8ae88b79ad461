/* expect:
FILE:8:20: prefix 16: loop i needs no parts: write parallel or rfactor
    #pragma looptune prefix 16
                     ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix 16
  for (int i = 0; i < n; i++)
    s += x[i];
  y[0] = s;
}
