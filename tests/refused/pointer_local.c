/* expect:
FILE:9:10: the pointer p is not accepted in a codelet: write the array it points to and an index instead
    double *p = row(n);
           ^
  --kernel chooses one of its loop nests: f:10, f:11
*/
double *row(int i);
void f(int n, double *x) {
  double *p = row(n);
  for (int i = 0; i < n; i++) p[i] = 1;
  for (int i = 0; i < n; i++) x[i] += 1;
}
