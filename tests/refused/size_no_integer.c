/* expect:
n must be an integer, got 2.5
*/
/* with: -D n=2.5 */
#pragma hmpp f codelet
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
