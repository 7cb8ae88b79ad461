/* expect:
FILE:7:22: n is an extent of x and may have another value here than in its declaration: declare x with a variable that keeps its value
  void f(int n, double x[n][n]) {
                       ^
*/
/* with: --kernel f:9 */
void f(int n, double x[n][n]) {
  n = 2;
  for (int i = 0; i < n; i++) x[i][i] = n;
}
