/* expect:
FILE:8:5: A[…], a pointer to a row of A, as a value or a target is not accepted in a codelet: write its elements instead
      A[i] = x;
      ^^^^
*/
void f(int n, double **A, double *x) {
  for (int i = 0; i < n; i++) {
    A[i] = x;
    A[i][0] += 1;
  }
}
