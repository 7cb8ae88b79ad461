/* expect:
FILE:6:20: long double is not accepted in a codelet: write double instead
  static long double third(int x) { return x / 3; }
                     ^^^^^
*/
static long double third(int x) { return x / 3; }
void f(int n, double *a) {
  for (int i = 0; i < n; i++) a[i] = third(i) + (long double)i;
}
