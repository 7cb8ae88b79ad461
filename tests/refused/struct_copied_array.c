/* expect:
FILE:8:31: a copy of a struct with the field x, which is no number, is not accepted in a codelet: write its fields one by one instead
    for (int i = 0; i < n; i++) p[i] = q[i];
                                ^^^^^^^^^^^
*/
struct point { double x[30]; };
void f(int n, struct point p[n], struct point q[n]) {
  for (int i = 0; i < n; i++) p[i] = q[i];
}
