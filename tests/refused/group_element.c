/* expect:
FILE:20:11: first is an element of an array that an earlier codelet computes: pass the array, and read the element in the codelet
    two(64, a[0], a);
            ^^^^
*/
#pragma hmpp <g> group, target=CUDA
#pragma hmpp <g> one codelet, args[x].io=out
void one(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
#pragma hmpp <g> two codelet, args[x].io=inout
void two(int n, double first, double x[n]) {
  for (int i = 0; i < n; i++) x[i] += first;
}
int main(void) {
  static double a[64];
  #pragma hmpp <g> one callsite
  one(64, a);
  #pragma hmpp <g> two callsite
  two(64, a[0], a);
  return 0;
}
