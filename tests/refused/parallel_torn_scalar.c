/* expect:
FILE:9:18: parallel is illegal: iterations of loop i would share t; make t an array with an element for each i
    #pragma hmppcg parallel
                   ^^^^^^^^
  instead: it is legal with `expand t`
*/
void f(int n, double A[n], double B[n]) {
  double t;
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++) {
    if (i == n - 1) t = A[i];
    B[i] = i;
  }
  B[0] = t;
}
