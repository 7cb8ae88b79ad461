/* expect:
FILE:8:18: unroll needs a counted loop, this is a while loop
    #pragma hmppcg unroll 2
                   ^^^^^^^^
*/
void f(int n, double x[n]) {
  int i = 0;
  #pragma hmppcg unroll 2
  while (x[i] > 1) {
    x[i] = x[i] / 2;
    i = i + n;
  }
}
