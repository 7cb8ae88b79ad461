/* expect:
FILE:7:10: t has no extent: write one, such as t[8]
    double t[];
           ^
*/
void f(int n, double *x) {
  double t[];
  for (int i = 0; i < n; i++) x[i] = t[i];
}
