/* expect:
directives:1:9: no loop k in f; its loops are i (1)
  loop k: unroll 2
          ^^^^^^^^
*/
/* with: `loop k: unroll 2` */
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
