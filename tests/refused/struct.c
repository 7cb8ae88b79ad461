/* expect:
FILE:8:31: this assignment is not accepted in a codelet: write a variable or an array element on its left instead
    for (int i = 0; i < n; i++) p[i].x = 1;
                                ^^^^^^^^^^
*/
struct point { double x, y; };
void f(int n, struct point *p) {
  for (int i = 0; i < n; i++) p[i].x = 1;
}
