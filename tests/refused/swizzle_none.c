/* expect:
FILE:7:18: swizzle needs the rows of a strip (syntax: swizzle ROWS)
  #pragma looptune swizzle
                   ^^^^^^^
*/
void f(int n, int m, double A[n][m]) {
#pragma looptune swizzle
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) A[i][j] = i;
}
