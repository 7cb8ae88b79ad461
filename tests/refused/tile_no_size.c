/* expect:
FILE:7:18: tile needs a size (syntax: tile LOOP:SIZE [, LOOP:SIZE ...])
    #pragma hmppcg tile
                   ^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg tile
  for (int i = 0; i < n; i++) B[i] = A[i];
}
