/* expect:
FILE:7:26: expected an argument before ','
    #pragma hmppcg unroll (, split)
                           ^
*/
void f(int n, double *x) {
  #pragma hmppcg unroll (, split)
  for (int i = 0; i < n; i++) x[i] = 1;
}
