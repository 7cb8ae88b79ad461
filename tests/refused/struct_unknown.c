/* expect:
FILE:9:38: a struct is not accepted in a codelet: write one array or scalar parameter per field instead
    for (int i = 0; i < n; i++) x[i] = p->x;
                                       ^^^^
*/
struct point;
extern struct point *p;
void f(int n, double x[n]) {
  for (int i = 0; i < n; i++) x[i] = p->x;
}
