/* expect:
FILE:7:29: overlap: the number of columns must be at most 8, got 9
  #pragma looptune overlap 4, columns 9
                              ^^^^^^^^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune overlap 4, columns 9
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n; i++) B[i] = A[i - 1];
    for (int i = 1; i < n; i++) A[i] = B[i];
  }
}
