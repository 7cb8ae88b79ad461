/* expect:
FILE:6:14: hmpp external is not accepted: write the codelet in this file, with its body instead
  #pragma hmpp f external, target=CUDA
               ^^^^^^^^^^
*/
#pragma hmpp f external, target=CUDA
void f(int n, double *x) {
  for (int i = 0; i < n; i++) x[i] = 1;
}
