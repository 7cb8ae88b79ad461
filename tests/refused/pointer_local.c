/* expect:
FILE:7:10: the pointer p is not accepted in a codelet: write the array it points to and an index instead
    double *p = x;
           ^
*/
void f(int n, double *x) {
  double *p = x;
  for (int i = 0; i < n; i++) p[i] = 1;
}
