/* expect:
FILE:22:10: the extent m of x is computed by a codelet before this one: write a constant or a parameter
    two(k, a);
           ^
*/
#pragma hmpp <g> group, target=CUDA
#pragma hmpp <g> one codelet, args[count].io=out
void one(int n, int *count) {
  count[0] = 0;
  for (int i = 0; i < n; i++) count[0] += 1;
}
#pragma hmpp <g> two codelet, args[x].io=inout
void two(int m, double x[m]) {
  for (int i = 0; i < m; i++) x[i] += 1;
}
int main(void) {
  static double a[64];
  int k;
  #pragma hmpp <g> one callsite
  one(64, &k);
  #pragma hmpp <g> two callsite
  two(k, a);
  return 0;
}
