/* expect:
FILE:8:18: snapshot y is illegal: loop i reads what it has written: iteration (i=0) of line 10 must run before (i=0) of line 11 when n=1
    #pragma hmppcg snapshot y
                   ^^^^^^^^^^
  flow on y: (i=0) writes y[i] 10:5, (i=0) reads y[n - 1 - i] 11:12
*/
void f(int n, double x[n], double y[n]) {
  #pragma hmppcg snapshot y
  for (int i = 0; i < n; i++) {
    y[i] = x[i];
    x[i] = y[n - 1 - i];
  }
}
