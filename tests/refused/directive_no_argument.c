/* expect:
FILE:7:26: an argument is expected before ','
    #pragma hmppcg unroll (, split)
                           ^
*/
void f(int n, double *x) {
  #pragma hmppcg unroll (, split)
  for (int i = 0; i < n; i++) x[i] = 1;
}
