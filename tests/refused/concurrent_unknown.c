/* expect:
FILE:8:18: concurrent: it is not known what loops i and i access
  #pragma looptune concurrent
                   ^^^^^^^^^^
*/
void f(int n, int index[n], float A[n], float B[n]) {
  for (int i = 0; i < n; i++) A[index[i]] = B[i] * 0.5f;
#pragma looptune concurrent
  for (int i = 0; i < n; i++) A[index[i] + n / 2 - n / 2] = 1.0f;
}
