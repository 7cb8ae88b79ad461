/* expect:
FILE:7:26: an argument is missing after ','
    #pragma hmppcg unroll 4,
                           ^
*/
void f(int n, double *x) {
  #pragma hmppcg unroll 4,
  for (int i = 0; i < n; i++) x[i] = 1;
}
