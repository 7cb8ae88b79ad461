/* expect:
FILE:7:26: unexpected ';' in a directive
    #pragma hmppcg tile i:4; j:8
                           ^
*/
void f(int n, double *x) {
  #pragma hmppcg tile i:4; j:8
  for (int i = 0; i < n; i++) x[i] = 1;
}
