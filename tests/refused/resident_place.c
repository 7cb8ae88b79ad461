/* expect:
FILE:7:18: resident of loop t: it writes A[2 * i], which is not at the place of the iteration
  #pragma looptune resident
                   ^^^^^^^^
*/
void f(int n, int steps, float A[2 * n]) {
#pragma looptune resident
  for (int t = 0; t < steps; t++)
    for (int i = 0; i < n; i++) A[2 * i] = A[2 * i] * 0.5f + A[1];
}
