/* expect:
directives:1:9: 2 loops are named i; choose one by number: i (1), i (2)
  loop i: unroll 2
          ^^^^^^^^
*/
/* with: `loop i: unroll 2` */
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
  for (int i = 0; i < n; i++) x[i] += 1;
}
