/* expect:
FILE:8:31: a struct is not accepted in a codelet: write one array or scalar parameter per field instead
    for (int i = 0; i < n; i++) p[i].x = 1;
                                ^
*/
struct point { double x, y; };
void f(int n, struct point *p) {
  for (int i = 0; i < n; i++) p[i].x = 1;
}
