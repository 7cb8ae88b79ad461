/* expect:
FILE:7:11: a line that begins with & continues no line that ends in &
    #pragma hmppcg & unroll 4
            ^^^^^^^^^^^^^^^^^
*/
void f(int n, double *x) {
  #pragma hmppcg & unroll 4
  for (int i = 0; i < n; i++) x[i] = 1;
}
