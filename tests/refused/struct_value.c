/* expect:
FILE:8:38: a struct as a value is not accepted in a codelet: write its fields instead
    for (int i = 0; i < n; i++) x[i] = p[i];
                                       ^^^^
*/
struct point { double x, y; };
void f(int n, struct point p[n], double x[n]) {
  for (int i = 0; i < n; i++) x[i] = p[i];
}
