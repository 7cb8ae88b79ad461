/* expect:
FILE:7:6: v, an array of pointers, is not accepted in a group of codelets: write one array
  void first(int n, float **v) {
       ^^^^^
*/
#pragma hmpp <g> first codelet
void first(int n, float **v) {
  for (int i = 0; i < n; i++) v[0][i] = 1;
}
#pragma hmpp <g> second codelet
void second(int n, float *x) {
  for (int i = 0; i < n; i++) x[i] += 1;
}
int main(void) {
  float x[9], *v[1] = {x};
#pragma hmpp <g> first callsite
  first(9, v);
#pragma hmpp <g> second callsite
  second(9, x);
}
