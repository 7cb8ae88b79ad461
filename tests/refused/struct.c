/* expect:
FILE:9:31: a struct (p_next) is not accepted in a codelet: write one parameter per field instead
    for (int i = 0; i < n; i++) p->next->at[i].x = 1;
                                ^^^^^^^
*/
struct point { double x, y; };
struct list { struct point *at; struct list *next; };
void f(int n, struct list *p) {
  for (int i = 0; i < n; i++) p->next->at[i].x = 1;
}
