/* expect:
FILE:7:20: launchbounds needs a number of blocks, or off (syntax: launchbounds BLOCKS | off)
    #pragma looptune launchbounds
                     ^^^^^^^^^^^^
*/
void f(int n, double x[n]) {
  #pragma looptune launchbounds
  for (int i = 0; i < n; i++) x[i] *= 2;
}
