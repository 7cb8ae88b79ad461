/* expect:
FILE:7:29: persistent has no argument 'blocks' (syntax: persistent [BLOCKS])
  #pragma looptune persistent blocks 2
                              ^^^^^^^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune persistent blocks 2
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++) B[i] = A[i - 1];
    for (int i = 1; i < n - 1; i++) A[i] = B[i];
  }
}
