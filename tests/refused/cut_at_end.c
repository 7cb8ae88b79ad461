/* expect:
FILE:10:20: cut must be followed by a statement
      #pragma hmppcg cut
                     ^^^
*/
void f(int n, double *x) {
  #pragma hmppcg distribute
  for (int i = 0; i < n; i++) {
    x[i] = 1;
    #pragma hmppcg cut
  }
}
