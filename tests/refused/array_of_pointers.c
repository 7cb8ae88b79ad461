/* expect:
FILE:8:11: rows, an array of pointers, is not accepted in a codelet: write an array with all its extents, such as rows[n][m], instead
    double *rows[4];
            ^^^^
*/
#pragma hmpp rows codelet, target=CUDA
void f(int n, double A[4][n]) {
  double *rows[4];
  for (int i = 0; i < 4; i++) rows[i] = A[i];
  for (int i = 0; i < 4; i++) rows[i][0] = 1;
}
