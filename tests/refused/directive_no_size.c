/* expect:
FILE:7:24: an argument is missing after ':'
    #pragma hmppcg tile i:
                         ^
*/
void f(int n, double *x) {
  #pragma hmppcg tile i:
  for (int i = 0; i < n; i++) x[i] = 1;
}
