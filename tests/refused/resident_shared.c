/* expect:
FILE:7:18: resident: 3 rows in shared memory are more than the thread's 2
  #pragma looptune resident rows 2, shared 3
                   ^^^^^^^^^^^^^^^^^^^^^^^^^
*/
void f(int n, int steps, float A[n]) {
#pragma looptune resident rows 2, shared 3
  for (int t = 0; t < steps; t++)
    for (int i = 0; i < n; i++) A[i] = A[i] * 0.5f;
}
