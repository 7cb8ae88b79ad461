/* expect:
FILE:7:36: more than 2,000 calls are inlined here: write loops
  static void g1(double *x, int i) { g0(x, i); g0(x, i + 1); }
                                     ^^^^^^^^
*/
static void g0(double *x, int i) { x[i] += 1; }
static void g1(double *x, int i) { g0(x, i); g0(x, i + 1); }
static void g2(double *x, int i) { g1(x, i); g1(x, i + 1); }
static void g3(double *x, int i) { g2(x, i); g2(x, i + 1); }
static void g4(double *x, int i) { g3(x, i); g3(x, i + 1); }
static void g5(double *x, int i) { g4(x, i); g4(x, i + 1); }
static void g6(double *x, int i) { g5(x, i); g5(x, i + 1); }
static void g7(double *x, int i) { g6(x, i); g6(x, i + 1); }
static void g8(double *x, int i) { g7(x, i); g7(x, i + 1); }
static void g9(double *x, int i) { g8(x, i); g8(x, i + 1); }
static void g10(double *x, int i) { g9(x, i); g9(x, i + 1); }
static void g11(double *x, int i) { g10(x, i); g10(x, i + 1); }
void f(int n, double *a) {
  for (int i = 0; i < n; i++) g11(a, i);
}
