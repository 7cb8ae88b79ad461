/* expect:
FILE:7:45: 2i is an integer, which divides as one: write 2.0i
    for (int i = 0; i < n; i++) x[i] = x[i] + 2i / 4;
                                              ^^
*/
void f(int n, double _Complex *x) {
  for (int i = 0; i < n; i++) x[i] = x[i] + 2i / 4;
}
