/* expect:
FILE:7:33: a multiprocessor has 32 blocks at most, not 64
    #pragma looptune launchbounds 64
                                  ^^
*/
void f(int n, double x[n]) {
  #pragma looptune launchbounds 64
  for (int i = 0; i < n; i++) x[i] *= 2;
}
