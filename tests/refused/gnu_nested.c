/* expect:
FILE:7:3: a function inside a function is GNU C: write it outside
    int g(int k) { return k + 1; }
    ^^^
*/
void f(int n, int *x) {
  int g(int k) { return k + 1; }
  for (int i = 0; i < n; i++) x[i] = g(i);
}
