/* expect:
FILE:10:18: gridify of three loops: loop i must contain only loop k, and that loop only j: use permute or distribute first
    #pragma hmppcg gridify(i, k, j)
                   ^^^^^^^^^^^^^^^^
  instead: `gridify i` is legal
  instead: `gridify k` is legal
  instead: `gridify j` is legal
*/
void f(int n, double A[n][n][n]) {
  #pragma hmppcg gridify(i, k, j)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++)
        A[i][j][k] = 1;
}
