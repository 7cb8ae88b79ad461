/* expect:
FILE:7:20: maxregs needs one number of registers (syntax: maxregs NUMBER)
    #pragma looptune maxregs 64, 32
                     ^^^^^^^^^^^^^^
*/
void f(int n, double x[n]) {
  #pragma looptune maxregs 64, 32
  for (int i = 0; i < n; i++) x[i] *= 2;
}
