/* expect:
FILE:7:23: pack takes no argument, got '2'
  #pragma looptune pack 2
                        ^
*/
void f(int n, int m, double A[n][m]) {
#pragma looptune pack 2
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) A[i][j] = i;
}
