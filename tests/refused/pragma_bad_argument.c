/* expect:
FILE:7:27: expected ',' before 'split'
    #pragma hmppcg unroll 4 split
                            ^^^^^
*/
void f(int n, double *x) {
  #pragma hmppcg unroll 4 split
  for (int i = 0; i < n; i++) x[i] = 1;
}
