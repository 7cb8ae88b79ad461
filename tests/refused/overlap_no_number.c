/* expect:
FILE:7:18: overlap needs the number of steps per launch first (syntax: overlap STEPS [, rows N] [, columns N])
  #pragma looptune overlap
                   ^^^^^^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune overlap
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n; i++) B[i] = A[i - 1];
    for (int i = 1; i < n; i++) A[i] = B[i];
  }
}
