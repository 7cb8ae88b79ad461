/* expect:
FILE:8:20: rfactor 4 is illegal: loop i carries a dependence: iteration (i=1) must run before (i=2) when n=3
    #pragma looptune rfactor 4
                     ^^^^^^^^^
  flow on x: (i=1) writes x[i] 10:5, (i=2) reads x[i - 1] 10:13
*/
void f(int n, int m, double A[n][n], double B[n][n], double x[n], double y[n], int k[n]) {
  #pragma looptune rfactor 4
  for (int i = 1; i < n; i++)
    x[i] += x[i - 1];
}
