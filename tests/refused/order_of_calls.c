/* expect:
FILE:8:38: seed is changed and used in one expression, in an order that C leaves open: write two statements
    for (int i = 0; i < n; i++) x[i] = next(&seed) - next(&seed);
                                       ^^^^^^^^^^^^^^^^^^^^^^^^^
*/
static int next(int *seed) { *seed = *seed * 5 + 1; return *seed & 15; }
void f(int n, int seed, int *x) {
  for (int i = 0; i < n; i++) x[i] = next(&seed) - next(&seed);
}
