/* expect:
FILE:6:9: the codelet f is defined in another file: give that file
  #pragma hmpp f codelet, target=CUDA
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
*/
#pragma hmpp f codelet, target=CUDA
void f(int n, double *x);
