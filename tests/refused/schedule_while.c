/* expect:
FILE:7:18: schedule: the nest has a while loop (line 10), whose trips are not known
    #pragma hmppcg schedule
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][n], double x[n], int k[n]) {
  #pragma hmppcg schedule
  for (int i = 1; i < n; i++) {
    int l = k[i];
    while (l > 0) l = k[l];
    x[i] = l;
  }
}
