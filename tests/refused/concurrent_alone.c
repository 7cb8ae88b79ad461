/* expect:
FILE:7:18: concurrent: no loop of the text stands directly before loop i
  #pragma looptune concurrent
                   ^^^^^^^^^^
*/
void f(int n, float A[n], float B[n]) {
#pragma looptune concurrent
  for (int i = 0; i < n; i++) A[i] = A[i] * 0.5f;
  for (int i = 0; i < n; i++) B[i] = B[i] * 0.5f;
}
