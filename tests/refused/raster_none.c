/* expect:
FILE:7:18: raster needs the rows of a strip (syntax: raster ROWS)
  #pragma looptune raster
                   ^^^^^^
*/
void f(int n, int m, double A[n][m]) {
#pragma looptune raster
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) A[i][j] = i;
}
