/* expect:
no codelet g in FILE: it has f
*/
/* with: --kernel g */
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
