/* expect:
FILE:6:14: unknown hmpp directive: expected one of codelet, callsite, synchronize, acquire, allocate, release, advancedload, delegatedstore, group, map, mapbyname, region, resident
  #pragma hmpp f codelt, target=CUDA
               ^^^^^^^^
*/
#pragma hmpp f codelt, target=CUDA
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
