/* expect:
FILE:7:26: tile takes several sizes with their loops (syntax: tile LOOP:SIZE [, LOOP:SIZE ...])
    #pragma hmppcg tile 4, 4
                           ^
*/
void f(int n, float *x) {
  #pragma hmppcg tile 4, 4
  for (int i = 0; i < n; i++) x[i] = 0;
}
