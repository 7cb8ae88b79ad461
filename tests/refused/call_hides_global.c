/* expect:
FILE:9:31: m is a parameter, and g, which is called here, uses the m of the file: rename one of them
    for (int i = 0; i < m; i++) g(x);
                                ^^^^
*/
int m;
static void g(double *x) { x[0] = m; x[1]++; }
void f(int n, int m, double *x) {
  for (int i = 0; i < m; i++) g(x);
}
