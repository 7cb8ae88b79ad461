/* expect:
FILE:7:31: g0 is an expression of 24,575 operations when the functions it calls are inlined: the limit is 20,000
  static int g1(int x) { return g0(g0(x)) + g0(g0(x + 1)); }
                                ^^^^^^^^^
*/
static int g0(int x) { return ((x * x) + (x * x)) * ((x * x) + (x * x)); }
static int g1(int x) { return g0(g0(x)) + g0(g0(x + 1)); }
static int g2(int x) { return g1(g1(x)); }
void f(int n, int a[n]) {
  for (int i = 0; i < n; i++)
    a[i] = g2(i);
}
