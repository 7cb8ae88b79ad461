/* expect:
FILE:8:31: a union (w) is not accepted in a codelet: write float, double or an integer type instead
      union { int i; float f; } w;
                                ^
*/
void f(int n, float *x, int *y) {
  for (int i = 0; i < n; i++) {
    union { int i; float f; } w;
    w.f = x[i];
    y[i] = w.i;
  }
}
