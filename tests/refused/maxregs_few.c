/* expect:
FILE:7:28: a thread has 16 to 255 registers, got 8
    #pragma looptune maxregs 8
                             ^
*/
void f(int n, double x[n]) {
  #pragma looptune maxregs 8
  for (int i = 0; i < n; i++) x[i] *= 2;
}
