/* expect:
FILE:7:19: `[a ... b] =` is GNU C: write the values, or a loop
    int t[4] = { [0 ... 3] = 1 };
                    ^
*/
void f(int n, int *x) {
  int t[4] = { [0 ... 3] = 1 };
  for (int i = 0; i < n; i++) x[i] = t[i % 4];
}
