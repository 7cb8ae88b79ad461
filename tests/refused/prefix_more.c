/* expect:
FILE:9:20: prefix 16 is illegal: loop i carries more than prefix sums: iteration (i_part=0, i=16) must run before (i_part=1, i=17) when n=18
    #pragma looptune prefix 16
                     ^^^^^^^^^
  flow on y: (i_part=0, i=16) writes y[i] 12:5, (i_part=1, i=17) reads y[i - 1] 12:12
*/
void f(int n, int m, double A[n][n], double x[n], double y[n], float v[n], int k[n]) {
  double s = 0;
  #pragma looptune prefix 16
  for (int i = 1; i < n; i++) {
    s += x[i];
    y[i] = y[i - 1] * y[i - 1] + s;
  }
}
