/* expect:
FILE:6:23: A, an array of pointers, is not accepted in a codelet: write an array with all its extents, such as A[n][m], instead
  void f(int n, double **A) {
                        ^
*/
void f(int n, double **A) {
  for (int i = 0; i < n; i++) A[i][0] = 1;
}
