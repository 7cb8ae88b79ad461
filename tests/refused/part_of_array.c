/* expect:
FILE:8:57: a part of an array as an argument is not accepted in a codelet: write the array and the index instead
    for (int i = 0; i < n; i++) { double t[2] = {1, first(A[i])}; A[i][i] = t[1]; }
                                                          ^^^^
*/
static double first(double *v) { return v[0]; }
void f(int n, double A[n][n]) {
  for (int i = 0; i < n; i++) { double t[2] = {1, first(A[i])}; A[i][i] = t[1]; }
}
