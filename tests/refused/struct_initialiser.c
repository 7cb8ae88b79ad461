/* expect:
FILE:9:18: this initialiser of p is not accepted in a codelet: write one value for each field instead
      struct point p = {x[i], 1, 2};
                   ^
*/
struct point { double x, y; };
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) {
    struct point p = {x[i], 1, 2};
    x[i] = p.x + p.y;
  }
}
