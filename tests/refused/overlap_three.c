/* expect:
FILE:7:37: overlap has no argument '3' (syntax: overlap STEPS [, rows N] [, columns N])
  #pragma looptune overlap 4, rows 2, 3
                                      ^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune overlap 4, rows 2, 3
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n; i++) B[i] = A[i - 1];
    for (int i = 1; i < n; i++) A[i] = B[i];
  }
}
