/* expect:
FILE:9:38: a call of g, which returns no number, is not accepted in a codelet: write its statements instead
    for (int i = 0; i < n; i++) x[i] = g(i);
                                       ^^^^
*/
static void g(int n) { return; }
void f(int n, double *x) {
  #pragma scop
  for (int i = 0; i < n; i++) x[i] = g(i);
  #pragma endscop
}
