/* expect:
directives:1:9: tile i:2: statements of loop i also stand in a loop beside it
  loop i: tile i:2
          ^^^^^^^^
*/
/* with: `loop i: tile i:2` */
void f(int n, double x[n]) {
  #pragma hmppcg splitat 4
  for (int i = 1; i < n; i++)
    x[i] = x[i - 1];
}
