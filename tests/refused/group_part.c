/* expect:
FILE:20:11: x is a part of an array that the codelets use elsewhere too: pass the whole array, and where the part begins as an integer
    two(32, a + 32);
            ^^^^^^
*/
#pragma hmpp <g> group, target=CUDA
#pragma hmpp <g> one codelet, args[x].io=out
void one(int n, double x[n]) {
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
  two(32, a + 32);
  return 0;
}
