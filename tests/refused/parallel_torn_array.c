/* expect:
FILE:8:18: parallel is illegal: iterations of loop i would share t; write t as an array with a row for each i, or of a constant size up to 4096 bytes
    #pragma hmppcg parallel
                   ^^^^^^^^
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
