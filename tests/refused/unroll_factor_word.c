/* expect:
FILE:7:25: unroll has no argument 'four' (syntax: unroll U [, contiguous | split [, vector R]] [, remainder | guarded | noremainder] [, jam | noJam])
    #pragma hmppcg unroll four, jam
                          ^^^^
*/
void f(int n, float *x) {
  #pragma hmppcg unroll four, jam
  for (int i = 0; i < n; i++) x[i] = 0;
}
