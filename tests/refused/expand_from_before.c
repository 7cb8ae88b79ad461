/* expect:
FILE:9:18: expand t is illegal: loop i reads t from before it: line 8 must run before (i=0) of line 13 when n=1
    #pragma hmppcg expand t
                   ^^^^^^^^
  flow on t: writes t 8:10, (i=0) reads t 13:15
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  double t = x[0];
  #pragma hmppcg expand t
  for (int i = 0; i < n; i++) {
    if (i > 0)
      t = x[i];
    A[i][0] = t;
  }
}
