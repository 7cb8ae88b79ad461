/* expect:
FILE:8:35: *:s is not what is reduced: loop i reduces +:s
    #pragma hmppcg parallel, reduce(*:s)
                                    ^^^
  instead: legal with `reduce(+:s)`
*/
void f(int n, double A[n], double *s) {
  #pragma hmppcg parallel, reduce(*:s)
  for (int i = 0; i < n; i++) *s += A[i];
}
