/* expect:
FILE:8:18: tile: no loop j stands directly in loop i
    #pragma hmppcg tile i:4, j:4
                   ^^^^^^^^^^^^^
  instead: `tile i:4` is legal
*/
void f(int n, double x[n]) {
  #pragma hmppcg tile i:4, j:4
  for (int i = 0; i < n; i++) x[i] = 1;
}
