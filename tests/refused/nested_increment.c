/* expect:
FILE:8:48: ++ inside an expression is not accepted in a codelet: write it as a statement of its own instead
    for (int i = 0; i < n; i++) { int s[2] = {1, j++}; x[i] = s[1]; }
                                                 ^
*/
void f(int n, double *x) {
  int j = 0;
  for (int i = 0; i < n; i++) { int s[2] = {1, j++}; x[i] = s[1]; }
}
