/* expect:
FILE:8:31: a copy of a struct of this size is not accepted in a codelet: write its fields one by one instead
    for (int i = 0; i < n; i++) p[i] = q[i];
                                ^^^^^^^^^^^
*/
struct point { double x[100]; };
void f(int n, struct point p[n], struct point q[n]) {
  for (int i = 0; i < n; i++) p[i] = q[i];
}
