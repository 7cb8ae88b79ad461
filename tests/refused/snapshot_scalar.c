/* expect:
FILE:8:18: snapshot t: t is no array
    #pragma hmppcg snapshot t
                   ^^^^^^^^^^
*/
void f(int n, double x[n], double y[n]) {
  double t;
  #pragma hmppcg snapshot t
  for (int i = 0; i < n; i++) {
    t = y[i];
    x[i] = t * t;
  }
}
