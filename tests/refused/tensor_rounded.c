/* expect:
FILE:9:18: tensor tf32 rounds each factor to 11 bits, so that results differ from those of the loops by more than floats do: say by how much they may, relative to an element, such as `tensor tf32, tolerance 1e-3`, or use `tensor tf32x3`, which is as exact as floats
  #pragma looptune tensor tf32
                   ^^^^^^^^^^^
*/
void f(int n, float A[n][n], float B[n][n], float C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
#pragma looptune tensor tf32
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
