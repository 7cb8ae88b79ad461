/* expect:
FILE:7:18: overlap 4 of loop t: its reads of A are not at a constant distance from its writes
  #pragma looptune overlap 4
                   ^^^^^^^^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune overlap 4
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n; i++) B[i] = A[n - i];
    for (int i = 1; i < n; i++) A[i] = B[i];
  }
}
