/* expect:
FILE:9:18: parallel is illegal: iterations of loop i would share t; make t an array with one row for each i, or give it a constant size of at most 4096 bytes
    #pragma hmppcg parallel
                   ^^^^^^^^
  instead: it is legal with `expand t`
*/
void f(int n, double A[n], double B[n]) {
  double t[1024];
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++) {
    t[0] = A[i];
    t[1] = t[0] * A[i];
    B[i] = t[1];
  }
}
