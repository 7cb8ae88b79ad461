/* expect:
FILE:7:20: vectorize takes one vector length (syntax: vectorize [[LOOP:]LENGTH [, remainder | guarded | noremainder]])
    #pragma looptune vectorize 2, 4
                     ^^^^^^^^^^^^^^
*/
void f(int n, double x[n]) {
  #pragma looptune vectorize 2, 4
  for (int i = 0; i < n; i++) x[i] *= 2;
}
