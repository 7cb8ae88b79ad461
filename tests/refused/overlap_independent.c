/* expect:
FILE:7:18: overlap 4 of loop i: its iterations are independent, and it needs a sequential loop
  #pragma looptune overlap 4
                   ^^^^^^^^^
*/
void f(int n, int m, double A[n][m]) {
#pragma looptune overlap 4
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) A[i][j] = 0;
}
