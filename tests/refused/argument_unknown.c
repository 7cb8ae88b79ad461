/* expect:
FILE:7:28: unroll has no argument 'splitt'; did you mean 'split'? (syntax: unroll U [, contiguous | split [, vector R]] [, remainder | guarded | noremainder] [, jam | noJam])
    #pragma hmppcg unroll 4, splitt
                             ^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 4, splitt
  for (int i = 0; i < n; i++) B[i] = A[i];
}
