/* expect:
FILE:7:18: overlap 4, rows 2 of loop t: arrays of one dimension have no rows: leave out `rows`
  #pragma looptune overlap 4, rows 2
                   ^^^^^^^^^^^^^^^^^
*/
void f(int n, int steps, double A[n], double B[n]) {
#pragma looptune overlap 4, rows 2
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n; i++) B[i] = A[i - 1];
    for (int i = 1; i < n; i++) A[i] = B[i];
  }
}
