/* expect:
FILE:9:20: unroll must be followed by a loop
      #pragma hmppcg unroll 4
                     ^^^^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) {
    x[i] = 1;
    #pragma hmppcg unroll 4
    x[i] = 2;
  }
}
