/* expect:
directives:1:9: no loop k in f, which has no loops
  loop k: unroll 2
          ^^^^^^^^
*/
/* with: --kernel f `loop k: unroll 2` */
void f(int n, double x[n]) {
  x[0] = n;
}
