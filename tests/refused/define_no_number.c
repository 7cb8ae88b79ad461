/* expect:
-D n=large: the value of the parameter n must be a number
*/
/* with: -D n=large */
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
