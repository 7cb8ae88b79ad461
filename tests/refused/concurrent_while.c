/* expect:
FILE:9:18: concurrent: loop i is in a while loop
  #pragma looptune concurrent
                   ^^^^^^^^^^
*/
void f(int n, float A[n], float B[n], int k[1]) {
  while (k[0] > 0) {
    for (int i = 0; i < n; i++) A[i] = A[i] * 0.5f;
#pragma looptune concurrent
    for (int i = 0; i < n; i++) B[i] = B[i] * 0.5f;
    k[0] = k[0] - (A[0] > 1.0f ? 2 : 1);
  }
}
