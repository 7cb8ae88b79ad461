/* expect:
FILE:7:23: tile needs a size for 'i' (syntax: tile LOOP:SIZE [, LOOP:SIZE ...])
    #pragma hmppcg tile i
                        ^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg tile i
  for (int i = 0; i < n; i++) B[i] = A[i];
}
