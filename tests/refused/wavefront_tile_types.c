/* expect:
FILE:7:20: wavefront i, j: tiles need loops whose variables are all int, or all long
    #pragma looptune wavefront i, j, tile 4, 4
                     ^^^^^^^^^^^^^^^^^^^^^^^^^
*/
void f(int n, float D[n][n]) {
  #pragma looptune wavefront i, j, tile 4, 4
  for (int i = 1; i < n; i++)
    for (unsigned j = 1; j < n; j++)
      D[i][j] = D[i - 1][j] + D[i][j - 1];
}
