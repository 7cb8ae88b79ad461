/* expect:
FILE:8:6: a struct among the parameters of a group's codelet is not accepted: pass its fields
  void first(struct grid *g) {
       ^^^^^
*/
struct grid { int n; float *v; };
#pragma hmpp <g> first codelet
void first(struct grid *g) {
  for (int i = 0; i < g->n; i++) g->v[i] = 1;
}
#pragma hmpp <g> second codelet
void second(int n, float *x) {
  for (int i = 0; i < n; i++) x[i] += 1;
}
int main(void) {
  float x[9];
  struct grid g = {9, x};
#pragma hmpp <g> first callsite
  first(&g);
#pragma hmpp <g> second callsite
  second(9, x);
}
