/* expect:
FILE:7:28: p, of struct point, of which no fields are declared, is not accepted in a codelet: write the fields of the struct instead
  void f(int n, struct point *p, double x[n]) {
                             ^
*/
struct point;
void f(int n, struct point *p, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = p[i].x;
}
