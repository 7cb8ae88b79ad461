/* expect:
FILE:9:16: a struct (p) is not accepted in a codelet: write one parameter per field instead
    struct point p;
                 ^
  --kernel chooses one of its loop nests: f:10, f:11
*/
struct point { double x, y; };
void f(int n, double *x) {
  struct point p;
  for (int i = 0; i < n; i++) x[i] = 1;
  for (int i = 0; i < n; i++) x[i] += 1;
}
