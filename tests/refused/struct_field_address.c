/* expect:
FILE:9:17: the address of u, a field of an array of structs with fields of several types, is not accepted in a codelet: write the array and an index instead
      double *u = &c[i].u;
                  ^^^^^^^
*/
struct cell { double u; int flag; };
void f(int n, struct cell c[n]) {
  for (int i = 0; i < n; i++) {
    double *u = &c[i].u;
    *u = c[i].flag;
  }
}
