/* expect:
FILE:7:31: A has 2 indices, not 1
    for (int i = 0; i < n; i++) A[i] = 1;
                                ^^^^
*/
void f(int n, double A[n][n]) {
  for (int i = 0; i < n; i++) A[i] = 1;
}
