/* expect:
FILE:8:3: expected ';' before 'for'
    for (int i = 0; i < m; i++) x[i] = 1;
    ^^^
*/
void f(int n, double *x) {
  int m = n
  for (int i = 0; i < m; i++) x[i] = 1;
}
