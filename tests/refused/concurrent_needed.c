/* expect:
FILE:8:18: concurrent: loop i before it writes A[i] (line 7), and loop i reads A[n - 1 - i] (line 9), which may be the same element
  #pragma looptune concurrent
                   ^^^^^^^^^^
*/
void f(int n, float A[n], float B[n]) {
  for (int i = 0; i < n; i++) A[i] = A[i] * 0.5f;
#pragma looptune concurrent
  for (int i = 0; i < n; i++) B[i] = A[n - 1 - i] * 0.5f;
}
