/* expect:
FILE:6:8: a function that is called here uses s of the file, which the codelet writes: pass its value as an argument
  double s;
         ^
*/
double s;
static double get(void) { return s; }
void f(int n, double *x) {
  for (int i = 0; i < n; i++) {
    s += 1;
    x[i] = get();
  }
}
