/* expect:
FILE:11:18: this use of the struct p is not accepted in a codelet: write its fields instead
      x[i] = norm(&p);
                   ^
*/
struct point { double x, y; };
double norm(struct point *p);
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) {
    struct point p = {x[i], 1};
    x[i] = norm(&p);
  }
}
