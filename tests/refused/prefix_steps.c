/* expect:
FILE:7:20: prefix 16: loop i has steps of 2: they must be 1
    #pragma looptune prefix 16
                     ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  #pragma looptune prefix 16
  for (int i = 2; i < n; i += 2)
    y[i] = y[i - 2] + x[i];
}
