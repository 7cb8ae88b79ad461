/* expect:
FILE:9:28: reduce lacks max:most, which loop i reduces as well
    #pragma hmppcg parallel, reduce(+:s)
                             ^^^^^^^^^^^
  instead: legal with `reduce(+:s, max:most)`
  instead: legal after `distribute`
*/
void f(int n, double A[n], double *s, double *most) {
  #pragma hmppcg parallel, reduce(+:s)
  for (int i = 0; i < n; i++) {
    *s += A[i];
    *most = A[i] > *most ? A[i] : *most;
  }
}
