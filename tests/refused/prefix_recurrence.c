/* expect:
FILE:7:20: prefix 16: loop i carries y[i], which is not accumulated by one operation
    #pragma looptune prefix 16
                     ^^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  #pragma looptune prefix 16
  for (int i = 1; i < n; i++)
    y[i] = 2 * y[i - 1] + x[i];
}
