/* expect:
FILE:8:32: this continue is nested too deeply: write if (…) { … } around what it skips
      if (i > 1) { if (x[i] < 0) continue; x[i] = 2; }
                                 ^^^^^^^^
*/
void f(int n, double *x) {
  for (int i = 0; i < n; i++) {
    if (i > 1) { if (x[i] < 0) continue; x[i] = 2; }
    x[i] = 1;
  }
}
