/* expect:
FILE:7:33: an array index is not an integer
    for (int i = 0; i < n; i++) A[A[i]] = 1;
                                  ^^^^
*/
void f(int n, double A[n]) {
  for (int i = 0; i < n; i++) A[A[i]] = 1;
}
