/* expect:
FILE:8:10: the pointer p is not accepted in a codelet: write the array it points to and an index instead
    double *p = x;
           ^
  --kernel chooses one of its loop nests: f:9, f:10
*/
void f(int n, double *x) {
  double *p = x;
  for (int i = 0; i < n; i++) p[i] = 1;
  for (int i = 0; i < n; i++) x[i] += 1;
}
