/* expect:
FILE:7:18: expand y: loop i does not write y
    #pragma hmppcg expand y
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand y
  for (int i = 0; i < n; i++)
    x[i] = 2 * y[0];
}
