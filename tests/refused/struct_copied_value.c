/* expect:
FILE:10:18: this value of a struct is not accepted in a codelet: write its fields one by one instead
      struct point p = middle(x[i]);
                   ^
*/
struct point { double x, y; };
struct point middle(double x);
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) {
    struct point p = middle(x[i]);
    x[i] = p.x + p.y;
  }
}
