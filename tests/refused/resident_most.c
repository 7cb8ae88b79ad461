/* expect:
FILE:7:27: resident: the number of columns must be at most 16, got 17
  #pragma looptune resident columns 17
                            ^^^^^^^^^^
*/
void f(int n, int steps, float A[n]) {
#pragma looptune resident columns 17
  for (int t = 0; t < steps; t++)
    for (int i = 0; i < n; i++) A[i] = A[i] * 0.5f;
}
