/* expect:
FILE:8:31: g takes a with other extents than a has: declare both alike
    for (int i = 0; i < n; i++) g(n, a);
                                ^^^^^^^
*/
static void g(int n, double a[n][4]) { for (int i = 0; i < n; i++) a[i][0] = 1; }
void f(int n, double a[n][8]) {
  for (int i = 0; i < n; i++) g(n, a);
}
