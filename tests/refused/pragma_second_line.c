/* expect:
FILE:8:26: expected ',' before 'guarded'
    #pragma hmppcg & split guarded
                           ^^^^^^^
*/
void f(int n, double *x) {
  #pragma hmppcg unroll 4, &
  #pragma hmppcg & split guarded
  for (int i = 0; i < n; i++) x[i] = 1;
}
