/* expect:
FILE:20:11: x is float64 here and float32 in another codelet of the group: give the array one type
    two(64, a);
            ^
*/
#pragma hmpp <g> group, target=CUDA
#pragma hmpp <g> one codelet, args[x].io=out
void one(int n, float x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
#pragma hmpp <g> two codelet, args[x].io=inout
void two(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] += 1;
}
int main(void) {
  static double a[64];
  #pragma hmpp <g> one callsite
  one(64, a);
  #pragma hmpp <g> two callsite
  two(64, a);
  return 0;
}
