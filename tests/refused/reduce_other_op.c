/* expect:
FILE:8:35: reduce names *:s, but loop i reduces +:s
    #pragma hmppcg parallel, reduce(*:s)
                                    ^^^
  instead: it is legal with `reduce(+:s)`
*/
void f(int n, double A[n], double *s) {
  #pragma hmppcg parallel, reduce(*:s)
  for (int i = 0; i < n; i++) *s += A[i];
}
