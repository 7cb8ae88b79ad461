/* expect:
no loop begins in line 6 of f: it has no loop
*/
/* with: --kernel f:6 */
void f(int n, double *x) {
  x[0] = 0;
}
