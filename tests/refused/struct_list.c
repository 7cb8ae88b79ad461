/* expect:
FILE:8:40: this pointer to structs is not accepted in a codelet: write an array and an index instead
    for (struct cell *c = first; c != 0; c = c->next) c->u = c->flag;
                                         ^^^^^^^^^^^
*/
struct cell { double u; int flag; struct cell *next; };
void f(struct cell *first) {
  for (struct cell *c = first; c != 0; c = c->next) c->u = c->flag;
}
