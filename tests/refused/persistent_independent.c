/* expect:
FILE:7:18: persistent of loop i: its iterations are independent, and it needs a sequential loop
  #pragma looptune persistent
                   ^^^^^^^^^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune persistent
  for (int i = 0; i < n; i++) A[i] = B[i];
}
