/* expect:
FILE:7:28: expand names x twice
    #pragma hmppcg expand x, x
                             ^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  #pragma hmppcg expand x, x
  for (int i = 0; i < n; i++)
    x[i] = 2 * y[0];
}
