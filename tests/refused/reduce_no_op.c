/* expect:
FILE:8:28: reduce takes an op and a variable, such as reduce(+:x)
    #pragma hmppcg parallel, reduce(s)
                             ^^^^^^^^^
  instead: it is legal with `reduce(+:s)`
*/
void f(int n, double A[n], double *s) {
  #pragma hmppcg parallel, reduce(s)
  for (int i = 0; i < n; i++) *s += A[i];
}
