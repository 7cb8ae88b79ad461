/* expect:
FILE:8:18: unroll needs a counted loop, and this one runs as a while loop: write for (i = a; i < n; i += s) with a bound of the type of i, and change i nowhere else
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
