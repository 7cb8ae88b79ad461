/* expect:
FILE:7:18: persistent of loop i: it contains no parallel loop
  #pragma looptune persistent
                   ^^^^^^^^^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune persistent
  for (int i = 1; i < n; i++) A[i] = A[i] + A[i - 1];
}
