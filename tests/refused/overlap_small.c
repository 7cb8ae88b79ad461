/* expect:
FILE:7:18: overlap 64 of loop t: 64 steps invalidate 320 elements at the edges of a tile, which has only 256 along x
  #pragma looptune overlap 64
                   ^^^^^^^^^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune overlap 64
  for (int t = 0; t < steps; t++) {
    for (int i = 5; i < n; i++) B[i] = A[i - 5];
    for (int i = 1; i < n; i++) A[i] = B[i];
  }
}
