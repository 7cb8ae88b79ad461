/* expect:
FILE has 2 codelets: choose one with --kernel: f, g
*/
void f(int n, double *x) { for (int i = 0; i < n; i++) x[i] = 1; }
void g(int n, double *x) { for (int i = 0; i < n; i++) x[i] = 2; }
