/* expect:
FILE:7:29: a multiprocessor holds at most 32 blocks, got 33
  #pragma looptune persistent 33
                              ^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune persistent 33
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++) B[i] = A[i - 1];
    for (int i = 1; i < n - 1; i++) A[i] = B[i];
  }
}
