/* expect:
FILE:7:25: a number in a directive has at most 18 digits
    #pragma hmppcg unroll 1234567890123456789
                          ^^^^^^^^^^^^^^^^^^^
*/
void f(int n, double *x) {
  #pragma hmppcg unroll 1234567890123456789
  for (int i = 0; i < n; i++) x[i] = 1;
}
