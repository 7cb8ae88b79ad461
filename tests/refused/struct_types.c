/* expect:
FILE:8:31: fields of types int32 and float64 of an array of structs: write one array for each field
    for (int i = 0; i < n; i++) c[i].u[0] = c[i].flag;
                                ^^^^^^
*/
struct cell { double *u; int flag; };
void f(int n, struct cell c[n]) {
  for (int i = 0; i < n; i++) c[i].u[0] = c[i].flag;
}
