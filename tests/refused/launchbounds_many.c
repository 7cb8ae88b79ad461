/* expect:
FILE:7:33: a multiprocessor holds at most 32 blocks, got 64
    #pragma looptune launchbounds 64
                                  ^^
*/
void f(int n, double x[n]) {
  #pragma looptune launchbounds 64
  for (int i = 0; i < n; i++) x[i] *= 2;
}
