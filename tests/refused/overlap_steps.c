/* expect:
FILE:7:26: overlap: the number of steps must be at most 64, got 65
  #pragma looptune overlap 65
                           ^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune overlap 65
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n; i++) B[i] = A[i - 1];
    for (int i = 1; i < n; i++) A[i] = B[i];
  }
}
