/* expect:
FILE:10:20: expand t: the nest has a while loop (line 8), whose trips are not known
      #pragma hmppcg expand t
                     ^^^^^^^^
*/
void f(int n, double x[n], double y[n]) {
  double t;
  while (x[0] > 1) {
    x[0] = x[0] / 2;
    #pragma hmppcg expand t
    for (int i = 0; i < n; i++) {
      t = y[i];
      y[i] = t * t;
    }
  }
}
