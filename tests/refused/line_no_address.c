/* expect:
directives:1:1: expected `loop NAME: …`, `nest NAME: …` or `codelet: …`
  i: parallel
  ^^^^^^^^^^^
*/
/* with: `i: parallel` */
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
