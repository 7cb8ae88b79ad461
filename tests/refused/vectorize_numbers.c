/* expect:
FILE:7:20: vectorize takes one number of neighbours (syntax: vectorize [[LOOP:]NEIGHBOURS [, remainder | guarded | noremainder]])
    #pragma looptune vectorize 2, 4
                     ^^^^^^^^^^^^^^
*/
void f(int n, double x[n]) {
  #pragma looptune vectorize 2, 4
  for (int i = 0; i < n; i++) x[i] *= 2;
}
