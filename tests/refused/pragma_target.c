/* expect:
FILE:7:17: missing ')' after the target
    #pragma hmppcg(CUDA unroll 4
                  ^^^^^^^^^^^^^^
*/
void f(int n, double *x) {
  #pragma hmppcg(CUDA unroll 4
  for (int i = 0; i < n; i++) x[i] = 1;
}
