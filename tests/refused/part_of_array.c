/* expect:
FILE:8:47: a part of an array as an argument is not accepted in a codelet: write the array and the index instead
    for (int i = 0; i < n; i++) A[i][i] = first(A[i]);
                                                ^^^^
*/
static double first(double *v) { return v[0]; }
void f(int n, double A[n][n]) {
  for (int i = 0; i < n; i++) A[i][i] = first(A[i]);
}
