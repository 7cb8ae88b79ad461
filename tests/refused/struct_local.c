/* expect:
FILE:8:16: a struct (p) is not accepted in a codelet: write one parameter per field instead
    struct point p;
                 ^
*/
struct point { double x, y; };
void f(int n, double *x) {
  struct point p;
  for (int i = 0; i < n; i++) x[i] = 1;
}
