/* expect:
FILE:7:18: expand z: f has no variable z; it has n, m, A, x, y
    #pragma hmppcg expand z
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand z
  for (int i = 0; i < n; i++)
    x[i] = 2 * y[0];
}
