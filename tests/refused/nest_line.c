/* expect:
no loop begins in line 6 of f: its loops begin in the lines 7
*/
/* with: --kernel f:6 */
void f(int n, double *x) {
  x[0] = 0;
  for (int i = 0; i < n; i++) x[i] = 1;
}
