/* expect:
one is the label of several codelets in FILE: choose one of a.one, b.one
*/
/* with: --kernel one */
#pragma hmpp <a> one codelet
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
#pragma hmpp <b> one codelet
void g(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = 2;
}
