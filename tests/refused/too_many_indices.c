/* expect:
FILE:7:31: A has 1 index, not 2
    for (int i = 0; i < n; i++) A[i][0] = 1;
                                ^^^^^^^
*/
void f(int n, double A[n]) {
  for (int i = 0; i < n; i++) A[i][0] = 1;
}
