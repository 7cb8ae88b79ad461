/* expect:
FILE:9:28: reduce must also name max:most, which loop i reduces
    #pragma hmppcg parallel, reduce(+:s)
                             ^^^^^^^^^^^
  instead: it is legal with `reduce(+:s, max:most)`
  instead: it is legal after `distribute`
*/
void f(int n, double A[n], double *s, double *most) {
  #pragma hmppcg parallel, reduce(+:s)
  for (int i = 0; i < n; i++) {
    *s += A[i];
    *most = A[i] > *most ? A[i] : *most;
  }
}
