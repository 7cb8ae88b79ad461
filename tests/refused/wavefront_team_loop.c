/* expect:
FILE:7:47: wavefront: the waves of a tile are sums, or iterations of the last loop (syntax: wavefront LOOP[:FACTOR], LOOP[:FACTOR] [, ...] [, tile SIZE, SIZE [, ...] [, team[:LAST]]])
    #pragma looptune wavefront i, j, tile 4, 4, team:i
                                                ^^^^^^
*/
void f(int n, float D[n][n]) {
  #pragma looptune wavefront i, j, tile 4, 4, team:i
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      D[i][j] = D[i - 1][j] + D[i][j - 1];
}
