/* expect:
FILE:7:33: typeof is not supported: write the type instead
    for (int i = 0; i < n; i++) { __typeof__(x[0]) t = 3; x[i] = t; }
                                  ^^^^^^^^^^
*/
void f(int n, int *x) {
  for (int i = 0; i < n; i++) { __typeof__(x[0]) t = 3; x[i] = t; }
}
