/* expect:
directives:1:1: a directive is missing after `loop i:`
  loop i:
  ^^^^^^^
*/
/* with: `loop i:` */
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
