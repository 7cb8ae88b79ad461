/* expect:
FILE:7:26: a strip has 1024 rows at most, not 2000
  #pragma looptune swizzle 2000
                           ^^^^
*/
void f(int n, int m, double A[n][m]) {
#pragma looptune swizzle 2000
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) A[i][j] = i;
}
