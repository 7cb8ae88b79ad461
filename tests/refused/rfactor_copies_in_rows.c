/* expect:
FILE:8:22: rfactor 4 of loop j: each part has a copy of h: there may be no parallel loop around, as i is
      #pragma looptune rfactor 4
                       ^^^^^^^^^
*/
void f(int n, int k[n][n], int h[n][64]) {
  for (int i = 0; i < n; i++)
    #pragma looptune rfactor 4
    for (int j = 0; j < n; j++)
      h[i][k[i][j] & 63]++;
}
