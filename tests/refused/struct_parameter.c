/* expect:
FILE:7:28: a struct (p) is not accepted in a codelet: write one parameter per field instead
  void f(int n, struct point *p, double x[n]) {
                             ^
*/
struct point;
void f(int n, struct point *p, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = p[i].x;
}
