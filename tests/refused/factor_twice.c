/* expect:
FILE:7:18: unroll takes one factor, got 2 (syntax: unroll U [, contiguous | split [, vector R]] [, remainder | guarded | noremainder] [, jam | noJam])
    #pragma hmppcg unroll 2, 4
                   ^^^^^^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 2, 4
  for (int i = 0; i < n; i++) B[i] = A[i];
}
